/** Chat view: the chat target, the turns, and the message box. */

import { get } from "../../lib/api.js";
import { composer } from "./composer.js";
import { conversationWith } from "./conversation.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h, icon } from "../../lib/dom.js";
import { autoscroll } from "../../lib/autoscroll.js";
import { agentsChanged } from "../agents/agent-import.js";
import { turnView } from "./turn-view.js";
import { toast } from "../ui/toast.js";
import { failedFilesView } from "../agents/failed-files.js";
import { modelPicker } from "../models/model-picker.js";
import { sessionBanner } from "../sessions/session-banner.js";
import { send } from "./turn-request.js";
import { routesOf, twins } from "../twins/twins-state.js";

/** Sentences that work in any home, with a model or without. */
const ALWAYS = ["what can you do?", "remember that my car is red", "what do you remember?"];

/** Fills `main` with the conversation with a chat target. `close()` when done. */
export function chatView(main, key) {
  const conversation = conversationWith(key);
  const heading = h("h1", { class: "visually-hidden", tabindex: -1 });
  const head = h("header", { class: "chat-head" });
  const session = sessionBanner();
  const list = h("ol", { class: "turns" });
  const empty = h("div", { class: "empty-chat" });
  const scroller = h(
    "div",
    { class: "chat-scroll", tabindex: 0, role: "region", "aria-label": "Conversation" },
    h("div", { class: "chat-column" }, empty, list),
  );
  const pill = h("button", { type: "button", class: "pill", hidden: true }, icon("down"), "New below");
  const end = autoscroll(scroller, pill);
  list.addEventListener("grew", () => end.grew());
  const troubles = failedFilesView();
  const writing = composer(conversation, { sent: () => end.toEnd() });
  const anew = h("button", { type: "button", class: "quiet small", onclick: renew }, "New conversation");
  const picker = modelPicker();
  writing.element.append(picker.element, anew);
  let views = new Map();
  let tries = [];

  const again = (text) => send(conversation, text) && end.toEnd();
  const add = (turn) => {
    const view = turnView(turn, { name: conversation.name, again, grew: () => end.grew() });
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
    if (none) fill(empty, threeThings(conversation, tries, again));
  };
  const drawHead = () => {
    fill(heading, key ? `Chat with ${conversation.name}` : "Chat");
    fill(head, key && withWhom(conversation.name, key));
  };
  const added = ({ detail }) => (add(detail), drawRest());
  const changed = ({ detail }) => {
    views.get(detail.id)?.update();
    drawRest();
    if (daemon.operator && detail.state === "done") twins.touch(); // a turn may have changed who lives here
  };
  const learn = async () => {
    try {
      tries = examples((await get(`${routesOf(key)}/agents`)).files ?? []);
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
  twins.addEventListener("change", drawHead);
  daemon.addEventListener("change", drawHead);
  agentsChanged.addEventListener("change", learn);
  fill(
    main,
    h(
      "section",
      { class: "chat" },
      h("div", {}, heading, session.element, head),
      scroller,
      h(
        "div",
        { class: "chat-foot" },
        h("div", { class: "chat-column" }, pill, troubles.element, writing.element),
      ),
    ),
  );
  drawHead();
  drawAll();
  learn();

  return {
    write: writing.focus,
    put: writing.put,
    close() {
      conversation.removeEventListener("added", added);
      conversation.removeEventListener("changed", changed);
      conversation.removeEventListener("replaced", drawAll);
      twins.removeEventListener("change", drawHead);
      daemon.removeEventListener("change", drawHead);
      agentsChanged.removeEventListener("change", learn);
      session.close();
      troubles.close();
      writing.close();
      picker.close();
      end.close();
    },
  };
}

/** Examples of the user's own agents; those of shipped ones may need the Internet, or an egg. */
function examples(files) {
  const cards = files
    .flatMap(({ cards = [] }) => cards)
    .filter((card) => card.try && card.origin === "yours" && !card.quarantined && !card.shadowed_by);
  return cards.map((card) => card.try);
}

function withWhom(name, key) {
  return h(
    "div",
    { class: "chat-column" },
    h(
      "p",
      {},
      h("a", { href: `#/twins/twin/${encodeURIComponent(key)}` }, name),
      h("span", { class: "soft" }, " is a twin that lives here."),
    ),
    h(
      "a",
      { class: "button quiet small", href: "#/chat" },
      icon("chevron", "icon back"),
      `Back to ${daemon.name}`,
    ),
  );
}

function threeThings({ key, name }, tries, again) {
  const three = [...new Set([ALWAYS[0], ...tries, ...ALWAYS])].slice(0, 3);
  return [
    h("p", { class: "greeting" }, key ? `This is ${name}.` : `${name} is running.`),
    h("p", { class: "soft" }, "Three things to try:"),
    h(
      "ul",
      { class: "tries" },
      three.map((text) =>
        h("li", {}, h("button", { type: "button", class: "try", onclick: () => again(text) }, text)),
      ),
    ),
    daemon.operator && h("p", { class: "soft" }, "Or drop an agent file here."),
  ];
}
