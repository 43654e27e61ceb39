/**
 * Chat with the brainstem, with a twin (`#/chat/<key>`), or in a session with phones (`#/chat/session/<id>`); a recorded
 * conversation, perhaps at a turn and words in it (`#/chat/conversation/<thread>/<turn>/<words>`), and the list of them
 * where it does not fit beside the chat (`#/chat/conversations`); the replay of a session egg (`#/chat/replay/<id>`).
 */

import { chatView } from "../components/chat/chat-view.js";
import { importFiles } from "../components/agents/agent-import.js";
import { allConversations, conversationWith } from "../components/chat/conversation.js";
import { chatTarget } from "../components/chat/chat-target.js";
import { openConversation } from "../components/conversations/conversations-state.js";
import { daemonEvents } from "../lib/event-stream.js";
import { fill, h } from "../lib/dom.js";
import { problemView } from "../components/ui/problem.js";

const SESSION = "session";
const REPLAY = "replay";
const CONVERSATION = "conversation";
const LIST = "conversations";

/** The rest of the address that leads back to whom one talked to last. */
export const rest = () => chatTarget.rest;

const opening = () => h("p", { class: "soft" }, "Opening…");

export function mount(main, { tryIt }) {
  let key = null;
  let shown = null;
  let talking = null; // the key of the chat that is shown: another conversation with it needs no other view
  let address = null;

  /** A timer spoke in the conversation that is shown: what it said is read from the record. */
  const timerSpoke = ({ detail }) => {
    if (detail.verb !== "HELP" || !detail.data?.timer || talking === null) return;
    const { thread } = conversationWith(talking);
    if (thread && thread === detail.thread) openConversation(thread).catch(() => undefined); // it stands in the list
  };
  daemonEvents.addEventListener("event", timerSpoke);

  const leave = () => {
    shown?.close();
    shown = talking = null;
  };
  const talk = (to) => {
    if (talking === to) return;
    leave();
    key = talking = to;
    chatTarget.turnTo(key);
    shown = chatView(main, key);
    if (document.activeElement === document.body) main.querySelector("h1").focus({ preventScroll: true });
  };
  const openRecorded = async (id, at = "", words = "") => {
    const mine = address;
    const known = at ? null : allConversations().find(({ thread, turns }) => thread === id && turns.length);
    if (known) talk(known.key);
    else if (talking === null) show(opening());
    let found = null;
    try {
      found = await openConversation(id, at);
    } catch (problem) {
      if (problem.code === undefined) throw problem;
      if (mine === address && !known) show(problemView(problem));
      return;
    }
    if (found === null || mine !== address) return;
    talk(found);
    if (at) shown.reveal(at, { words: words.split(" ").filter(Boolean) });
  };
  const show = (...inside) => {
    leave();
    fill(main, h("section", { class: "page" }, h("div", { class: "column" }, h("h1", { tabindex: -1 }, "Chat"), inside)));
  };

  /** Shows what few visits need, and fetches its module only then. */
  const later = async (load, view) => {
    const mine = address;
    show(opening());
    const module = await load();
    if (mine === address) shown = view(module);
  };

  return {
    go(rest) {
      if (rest.join("/") === address) return;
      address = rest.join("/");
      if (rest[0] === SESSION && rest[1])
        later(
          () => import("../components/sessions/session-view.js"),
          ({ sessionView }) => sessionView(main, rest[1]),
        );
      else if (rest[0] === REPLAY && rest[1])
        later(
          () => import("../components/sessions/session-replay.js"),
          ({ sessionReplay }) => sessionReplay(main, rest[1]),
        );
      else if (rest[0] === LIST)
        later(
          () => import("../components/conversations/conversations-view.js"),
          ({ conversationsView }) => conversationsView(main, chatTarget.key),
        );
      else if (rest[0] === CONVERSATION && rest[1]) openRecorded(rest[1], rest[2], rest[3]);
      else talk(rest[0] ?? "");
    },
    drops: () => ({
      words: shown?.attach ? "Drop to attach a picture, or to add an agent" : "Drop to add the agent",
      async take(files) {
        const { isPicture } = await import("../components/attachments/picture-file.js");
        const pictures = shown?.attach ? files.filter(isPicture) : [];
        if (pictures.length) shown.attach(pictures);
        const rest = files.filter((file) => !pictures.includes(file));
        if (rest.length) importFiles(rest, tryIt, key ?? "");
      },
    }),
    write: () => shown?.write?.(),
    put: (text) => shown?.put?.(text),
    close() {
      daemonEvents.removeEventListener("event", timerSpoke);
      leave();
    },
  };
}
