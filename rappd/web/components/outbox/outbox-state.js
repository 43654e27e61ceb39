/** The outbox: requests that wait for other machines. */

import { daemonEvents } from "../../lib/event-stream.js";
import { listen } from "../../lib/dom.js";
import { KeptState } from "../../lib/kept-state.js";
import { outbox as waiting } from "../../lib/operations.js";
import { peerCalls } from "../peers/calls-state.js";
import { isWaiting } from "./call-words.js";

const NEWS_MS = 400;

class Outbox extends KeptState {
  /** Rows of `GET /outbox`: what waits, then what lately came of it; the latest first. */
  rows = [];
  #soon = 0;
  #shown = 0;
  #ends = [];

  /** Asks anew. Says `change` when something is different. Raises `Problem`. */
  async look() {
    const { outbox = [] } = await waiting.list();
    const rows = [...outbox]
      .reverse()
      .sort((one, other) => Number(isWaiting(other)) - Number(isWaiting(one)));
    this.keep({ rows });
    return this;
  }

  /** Keeps the rows fresh while somebody shows them. Returns what ends that. */
  show() {
    if (!this.#shown++) {
      this.#ends = ["event", "machines"].map((type) => listen(type, [daemonEvents], this.#touch));
      this.#ends.push(listen("change", [peerCalls], this.#touch));
    }
    this.touch();
    return () => --this.#shown || this.#ends.forEach((end) => end());
  }

  /** Rows that wait still. */
  get waiting() {
    return this.rows.filter(isWaiting);
  }

  #touch = () => {
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => this.touch(), NEWS_MS);
  };
}

export const outbox = new Outbox();
