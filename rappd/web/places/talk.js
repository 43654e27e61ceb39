/** Talk: the conversation, and where one writes. */

import { get } from "../parts/api.js";
import { composer } from "../parts/composer.js";
import { conversation } from "../parts/conversation.js";
import { desk } from "../parts/desk.js";
import { fill, h, icon } from "../parts/dom.js";
import { followEnd } from "../parts/follow.js";
import { agentsChanged } from "../parts/incoming.js";
import { messageView } from "../parts/message.js";
import { toast } from "../parts/toast.js";
import { troublesView } from "../parts/troubles.js";
import { send } from "../parts/turn.js";

const ALWAYS = ["what can you do?", "what time is it?", "what do you remember about me?"];

export const dropsAgents = true;

export function mount(main) {
  const list = h("ol", { class: "turns" });
  const empty = h("div", { class: "empty-talk" });
  const scroller = h(
    "div",
    { class: "talk-scroll", tabindex: 0, role: "region", "aria-label": "Conversation" },
    h("div", { class: "talk-column" }, empty, list),
  );
  const pill = h("button", { type: "button", class: "pill", hidden: true }, icon("down"), "New below");
  const end = followEnd(scroller, pill);
  const troubles = troublesView();
  const writing = composer({ sent: () => end.toEnd() });
  const anew = h("button", { type: "button", class: "quiet small", onclick: renew }, "New conversation");
  writing.element.append(anew);
  let views = new Map();
  let tries = [];

  const again = (text) => send(text) && end.toEnd();
  const add = (turn) => {
    const view = messageView(turn, { again, grew: () => end.grew() });
    views.set(turn.id, view);
    list.append(view.element);
  };
  const drawAll = () => {
    views = new Map();
    fill(list);
    conversation.turns.forEach(add);
    drawRest();
    end.toEnd();
  };
  const drawRest = () => {
    const none = conversation.turns.length === 0;
    empty.hidden = !none;
    anew.hidden = none || Boolean(conversation.current);
    if (none) fill(empty, threeThings(tries, again));
  };
  const added = ({ detail }) => (add(detail), drawRest());
  const changed = ({ detail }) => (views.get(detail.id)?.update(), drawRest());
  const learn = async () => {
    try {
      tries = examples((await get("/agents")).files);
    } catch (found) {
      if (found.code === undefined) throw found; // the three that always work stay
    }
    drawRest();
  };

  function renew() {
    const back = conversation.renew();
    writing.focus();
    toast("New conversation.", { actions: [{ label: "Undo", run: back }] });
  }

  conversation.addEventListener("added", added);
  conversation.addEventListener("changed", changed);
  conversation.addEventListener("replaced", drawAll);
  agentsChanged.addEventListener("change", learn);
  fill(
    main,
    h(
      "section",
      { class: "talk" },
      h("h1", { class: "unseen", tabindex: -1 }, "Talk"),
      scroller,
      h(
        "div",
        { class: "talk-foot" },
        h("div", { class: "talk-column" }, pill, troubles.element, writing.element),
      ),
    ),
  );
  drawAll();
  learn();

  return {
    write: writing.focus,
    put: writing.put,
    text: writing.text,
    go: () => undefined,
    close() {
      conversation.removeEventListener("added", added);
      conversation.removeEventListener("changed", changed);
      conversation.removeEventListener("replaced", drawAll);
      agentsChanged.removeEventListener("change", learn);
      troubles.close();
      writing.close();
      end.close();
    },
  };
}

/** What to try first: of your own agents, then of the shipped ones, then what always works. */
function examples(files) {
  const cards = files
    .flatMap(({ cards = [] }) => cards)
    .filter((card) => card.try && !card.quarantined && !card.shadowed_by);
  cards.sort((one, other) => Number(other.origin === "yours") - Number(one.origin === "yours"));
  return cards.map((card) => card.try);
}

function threeThings(tries, again) {
  const three = [...new Set([ALWAYS[0], ...tries, ...ALWAYS])].slice(0, 3);
  return [
    h("p", { class: "greeting" }, `${desk.name} is awake.`),
    h("p", { class: "soft" }, "Three things to try:"),
    h(
      "ul",
      { class: "tries" },
      three.map((text) =>
        h("li", {}, h("button", { type: "button", class: "try", onclick: () => again(text) }, text)),
      ),
    ),
    desk.operator && h("p", { class: "soft" }, "Or drop an agent file here."),
  ];
}
