/** The chat target: the brainstem (key ""), or a twin on this machine. */

import { stored } from "../../lib/storage.js";
import { daemon } from "../../lib/daemon-state.js";
import { twins } from "../twins/twins-state.js";

/** Storage key of the conversation with a chat target, shared by all tabs. */
export const storageName = (key) => (key ? `conversation.${key}` : "conversation");

/** Storage key of the unsent draft for a chat target. */
export const draftOf = (key) => (key ? `draft.${key}` : "draft");

/** Name of a chat target; the start of its key where no name is known. */
export const nameOf = (key) =>
  key ? (twins.row(key)?.name ?? (stored(storageName(key))?.name || key.slice(0, 8))) : daemon.name;

class ChatTarget extends EventTarget {
  key = "";

  /** Selects a chat target; dispatches `change`. */
  turnTo(key) {
    if (key === this.key) return;
    this.key = key;
    this.dispatchEvent(new Event("change"));
  }

  /** The rest of Chat's address. */
  get rest() {
    return this.key ? [this.key] : [];
  }
}

export const chatTarget = new ChatTarget();
