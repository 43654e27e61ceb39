/** State of the daemon's that the page keeps. It outlives pages. */

import { daemon } from "./daemon-state.js";

const NEWS_MS = 250;

/**
 * Says `change` when it is different. A subclass has `look()`, which asks the daemon and raises `Problem`, and `forget()`
 * for when the right to see it is gone.
 */
export class KeptState extends EventTarget {
  #text = "";
  #soon = 0;

  /** True while the page has the right to see it. */
  get mayLook() {
    return daemon.operator;
  }

  /** Keeps it as long as the page lives: it is asked for when the right to see it comes, and when the daemon is back. */
  start() {
    const learn = () => (this.mayLook ? this.touch() : this.forget());
    daemon.addEventListener("operator", learn);
    daemon.addEventListener("back", () => this.touch());
    learn();
  }

  /** Asks anew; views get the event. The last known state stays while the daemon does not answer. */
  async touch() {
    if (!this.mayLook) return;
    try {
      await this.look();
    } catch (found) {
      if (found.code === undefined) throw found;
    }
  }

  /** The same, a moment later and once for many news. */
  touchSoon() {
    if (this.#soon) return;
    this.#soon = setTimeout(() => {
      this.#soon = 0;
      this.touch();
    }, NEWS_MS);
  }

  /** Takes `fields` over where `compared` is not what it was; true then. */
  keep(fields, compared = fields) {
    const text = JSON.stringify(compared);
    if (text === this.#text) return false;
    this.#text = text;
    Object.assign(this, fields);
    this.dispatchEvent(new Event("change"));
    return true;
  }
}
