/**
 * Chat with the brainstem, with a twin (`#/chat/<key>`), or in a session with phones (`#/chat/session/<id>`); the
 * replay of a session egg (`#/chat/replay/<id>`).
 */

import { chatView } from "../components/chat/chat-view.js";
import { importFiles } from "../components/agents/agent-import.js";
import { chatTarget } from "../components/chat/chat-target.js";
import { sessionReplay } from "../components/sessions/session-replay.js";
import { sessionView } from "../components/sessions/session-view.js";

const SESSION = "session";
const REPLAY = "replay";

/** The rest of the address that leads back to whom one talked to last. */
export const rest = () => chatTarget.rest;

export function mount(main, { tryIt }) {
  let key = null;
  let shown = null;
  let address = null;
  return {
    go(rest) {
      if (rest.join("/") === address) return;
      shown?.close();
      address = rest.join("/");
      if (rest[0] === SESSION && rest[1]) {
        shown = sessionView(main, rest[1]);
        return;
      }
      if (rest[0] === REPLAY && rest[1]) {
        shown = sessionReplay(main, rest[1]);
        return;
      }
      key = rest[0] ?? "";
      chatTarget.turnTo(key);
      shown = chatView(main, key);
    },
    drops: () => ({
      words: "Drop to add the agent",
      take: (files) => importFiles(files, tryIt, key ?? ""),
    }),
    write: () => shown.write?.(),
    put: (text) => shown.put?.(text),
    close: () => shown?.close(),
  };
}
