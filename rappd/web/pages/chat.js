/** Chat with the brainstem, or with a twin (`#/chat/<key>`). */

import { chatView } from "../components/chat/chat-view.js";
import { importFiles } from "../components/agents/agent-import.js";
import { chatTarget } from "../components/chat/chat-target.js";

/** The rest of the address that leads back to whom one talked to last. */
export const rest = () => chatTarget.rest;

export function mount(main, { tryIt }) {
  let key = null;
  let shown = null;
  return {
    go([now = ""]) {
      if (now === key) return;
      shown?.close();
      key = now;
      chatTarget.turnTo(key);
      shown = chatView(main, key);
    },
    drops: () => ({
      words: "Drop to add the agent",
      take: (files) => importFiles(files, tryIt, key),
    }),
    write: () => shown.write(),
    put: (text) => shown.put(text),
    close: () => shown?.close(),
  };
}
