// A conversation of this phone's own, made of the page's components.

import { composer } from "./web/components/chat/composer.js";
import { conversationWith } from "./web/components/chat/conversation.js";
import { send } from "./web/components/chat/turn-request.js";
import { conversations, openConversation } from "./web/components/conversations/conversations-state.js";
import { turnList } from "./web/components/conversations/turn-list.js";
import { autoscroll } from "./web/lib/autoscroll.js";
import { fill, h, icon } from "./web/lib/dom.js";
import * as operations from "./web/lib/operations.js";

const TRIES = ["what can you do?", "what day is it in 10 days?", "remember that my car is red"];

/** The conversation with a chat target. `shown()` once it is in the page, `close()` when done. */
export function ownConversation(key) {
  const conversation = conversationWith(key);
  const empty = h("div", { class: "empty-chat" });
  const scroller = h("div", { class: "chat-scroll", tabindex: 0, role: "region", "aria-label": "Conversation" });
  const pill = h("button", { type: "button", class: "pill", hidden: true }, icon("down"), "New below");
  const end = autoscroll(scroller, pill);
  const list = turnList(conversation, { scroller, end });
  const writing = composer(conversation, { sent: () => end.toEnd(), camera: true });
  const ask = (text) => send(conversation, text) && end.toEnd();
  scroller.append(h("div", { class: "chat-column" }, empty, list.element));
  scroller.addEventListener("grew", () => end.grew());

  /** Reads what a timer said here that this page does not show yet, as while it was closed. */
  const readTimers = async () => {
    const { thread } = conversation;
    if (!thread) return;
    const recorded = await operations.conversations.show({ thread }).catch(() => null); // at the next visit, then
    const here = new Set(conversation.turns.map(({ id }) => id));
    if (conversation.thread !== thread || !recorded?.turns.some(({ id, timer }) => timer && !here.has(id))) return;
    await openConversation(thread).catch(() => null);
  };

  const draw = () => {
    empty.hidden = conversation.turns.length > 0;
    if (empty.hidden || empty.firstChild) return;
    const tries = TRIES.map((text) => h("li", {}, h("button", { type: "button", class: "try", onclick: () => ask(text) }, text)));
    fill(
      empty,
      h("p", { class: "greeting" }, `Talk with ${conversation.name}.`),
      h("p", { class: "soft" }, "Three things to try:"),
      h("ul", { class: "tries" }, tries),
    );
  };
  const changed = ({ detail }) => {
    draw();
    if (["done", "stopped", "failed"].includes(detail.state)) conversations.refresh();
  };
  const watched = [["added", draw], ["changed", changed], ["replaced", draw]];
  for (const [type, heard] of watched) conversation.addEventListener(type, heard);
  draw();
  return {
    element: h(
      "section",
      { class: "chat" },
      h("div", {}),
      scroller,
      h("div", { class: "chat-foot" }, h("div", { class: "chat-column" }, pill, writing.element)),
    ),
    shown: list.draw,
    write: writing.focus,
    readTimers,
    reveal: list.reveal,
    close() {
      for (const [type, heard] of watched) conversation.removeEventListener(type, heard);
      list.close();
      writing.close();
      end.close();
    },
  };
}
