/** State of the twins on this machine. */

import { daemon } from "../../lib/daemon-state.js";
import { KeptState } from "../../lib/kept-state.js";
import * as operations from "../../lib/operations.js";

const FRESH_MS = 1000;

/** Prefix of a twin's routes; "" for the brainstem. */
export const routesOf = (key) => (key ? `/twins/${encodeURIComponent(key)}` : "");

class Twins extends KeptState {
  rows = [];
  unreadable = [];
  known = false;
  #at = -Infinity; // by the clock of the page, which begins at 0

  get mayLook() {
    return daemon.reads;
  }

  /** Asks anew. Says `change` when something is different. Raises `Problem`. */
  async look() {
    this.#take(await operations.twins.list(), true);
    return this;
  }

  /** Returns the state, fetched again unless it is fresh. */
  list() {
    return performance.now() - this.#at < FRESH_MS ? this : this.look();
  }

  forget() {
    this.#take({}, false);
  }

  /** The row of a key, or undefined. */
  row(key) {
    return this.rows.find((row) => row.key === key);
  }

  /** A twin's name, with the start of its key where others have the same name. */
  toldApart(key) {
    const { name } = this.row(key) ?? {};
    const alone = this.rows.filter((row) => row.name === name).length < 2;
    return alone ? name : `${name} ${key.slice(0, 4)}`;
  }

  #take({ twins = [], unreadable = [] }, known) {
    this.#at = known ? performance.now() : -Infinity;
    this.keep({ rows: twins, unreadable, known });
  }
}

export const twins = new Twins();
