/** Whom one talks to: the brainstem (key ""), or a twin that lives here. */

import { stored } from "../../lib/storage.js";
import { daemon } from "../../lib/daemon-state.js";
import { twins } from "../twins/twins.js";

/** What the conversation with a partner is kept under, here and in its other tabs. */
export const storageName = (key) => (key ? `conversation.${key}` : "conversation");

/** What the text that was written to a partner and not sent is kept under. */
export const draftOf = (key) => (key ? `draft.${key}` : "draft");

/** A partner's name; the start of its key where nothing more is known. */
export const nameOf = (key) =>
  key ? (twins.row(key)?.name ?? (stored(storageName(key))?.name || key.slice(0, 8))) : daemon.name;

class ChatTarget extends EventTarget {
  key = "";

  /** Turns to somebody; says `change`. */
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
