/** Chat view: the chat target, the turns, and the message box. */

import { autoscroll } from "../../lib/autoscroll.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { agentsChanged } from "../agents/agent-import.js";
import { failedFilesView } from "../agents/failed-files.js";
import { turnList } from "../conversations/turn-list.js";
import { modelPicker } from "../models/model-picker.js";
import { sessions, titleOf } from "../sessions/sessions-state.js";
import { twins } from "../twins/twins-state.js";
import { toast } from "../ui/toast.js";
import { composer } from "./composer.js";
import { conversationWith } from "./conversation.js";
import { send } from "./turn-request.js";

/** Sentences that work in any home, with a model or without. */
const ALWAYS = ["what can you do?", "what day is it in 10 days?", "remember that my car is red"];

/** Fills `main` with the conversation with a chat target. `close()` when done. */
export function chatView(main, key) {
  const conversation = conversationWith(key);
  const heading = h("h1", { class: "visually-hidden", tabindex: -1 });
  const head = h("header", { class: "chat-head" });
  const session = sessionBanner();
  const empty = h("div", { class: "empty-chat" });
  const scroller = h(
    "div",
    { class: "chat-scroll", tabindex: 0, role: "region", "aria-label": "Conversation" },
  );
  const pill = h("button", { type: "button", class: "pill", hidden: true }, icon("down"), "New below");
  const column = h("div", { class: "chat-column" });
  const end = autoscroll(scroller, pill, column);
  scroller.addEventListener("grew", () => end.grew());
  const troubles = failedFilesView();
  const writing = composer(conversation, { sent: () => end.toEnd() });
  const anew = actionButton("New conversation", renew, "quiet small");
  const picker = modelPicker(conversation);
  writing.element.append(picker.element, anew);
  const list = turnList(conversation, { scroller, end });
  fill(column, empty, list.element);
  fill(scroller, column);
  pill.addEventListener("click", () => list.draw());
  const side = h("div", { class: "chat-side" });
  const bar = h("div", {});
  let beside = null; // the list of conversations, for the operator
  let closed = false;
  let tries = [];

  const again = (text) => send(conversation, text) && end.toEnd();
  const drawRest = () => {
    const none = conversation.turns.length === 0;
    empty.hidden = !none;
    anew.hidden = none || Boolean(conversation.current) || daemon.operator;
    if (none) fill(empty, threeThings(conversation, tries, again));
  };
  const drawHead = () => {
    fill(heading, key ? `Chat with ${conversation.name}` : "Chat");
    fill(head, key && withWhom(conversation.name, key));
  };
  const drawSide = async () => {
    fill(bar, daemon.operator && conversationBar(startAnew));
    drawRest();
    beside?.close();
    beside = null;
    fill(side);
    if (!daemon.operator) return;
    fill(side, h("div", { class: "conversations" })); // its place, until the module is there
    const { conversationList } = await import("../conversations/conversation-list.js");
    if (closed || beside || !daemon.operator) return;
    beside = conversationList({ conversation, renew: startAnew });
    fill(side, beside.element);
  };
  const changed = ({ detail }) => {
    drawRest();
    if (daemon.operator && detail.state === "done") twins.touch(); // a turn may have changed who lives here
  };
  const learn = async () => {
    try {
      tries = examples((await operations.agents.list({ twin: key })).files ?? []);
    } catch (found) {
      if (found.code === undefined) throw found; // the three that always work stay
    }
    drawRest();
  };

  function startAnew() {
    conversation.renew(); // of an empty one, too: what is being opened comes no more
    go("chat", ...(key ? [key] : []));
    writing.focus();
  }

  function renew() {
    const back = conversation.renew();
    writing.focus();
    toast("New conversation.", { actions: [{ label: "Undo", run: back }] });
  }

  const replaced = () => (drawRest(), beside?.redraw());
  conversation.addEventListener("added", drawRest);
  conversation.addEventListener("changed", changed);
  conversation.addEventListener("replaced", replaced);
  daemon.addEventListener("operator", drawSide);
  twins.addEventListener("change", drawHead);
  daemon.addEventListener("change", drawHead);
  agentsChanged.addEventListener("change", learn);
  fill(
    main,
    h(
      "div",
      { class: "chat-page" },
      side,
      h(
        "section",
        { class: "chat" },
        h("div", {}, heading, bar, session.element, head),
        scroller,
        h(
          "div",
          { class: "chat-foot" },
          h("div", { class: "chat-column" }, pill, troubles.element, writing.element),
        ),
      ),
    ),
  );
  drawHead();
  drawSide();
  list.draw();
  learn();

  return {
    write: writing.focus,
    put: writing.put,
    attach: writing.attach,
    reveal: list.reveal,
    close() {
      closed = true;
      conversation.removeEventListener("added", drawRest);
      conversation.removeEventListener("changed", changed);
      conversation.removeEventListener("replaced", replaced);
      daemon.removeEventListener("operator", drawSide);
      beside?.close();
      list.close();
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

/** The way to the list of conversations where a screen is too narrow for both. */
function conversationBar(renew) {
  return h(
    "div",
    { class: "conversation-bar" },
    h("a", { class: "button quiet small", href: "#/chat/conversations" }, icon("activity"), "Conversations"),
    actionButton("New conversation", renew, "quiet small"),
  );
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
        h("li", {}, actionButton(text, () => again(text), "try")),
      ),
    ),
    daemon.operator && h("p", { class: "soft" }, "Or drop an agent file here."),
  ];
}

/** `element` is empty while no session is open; `close()` when it leaves the page. */
function sessionBanner() {
  const element = h("div", { class: "chat-head" });
  const draw = () => {
    const row = sessions.current;
    fill(element, row && line(row));
  };
  sessions.addEventListener("change", draw);
  draw();
  return { element, close: () => sessions.removeEventListener("change", draw) };
}

function line(row) {
  return h(
    "div",
    { class: "chat-column" },
    h("p", {}, h("a", { href: `#/chat/session/${row.id}` }, `${titleOf(row.here)} — open`)),
    h("a", { class: "button quiet small", href: `#/chat/session/${row.id}` }, "Show", icon("chevron")),
  );
}
