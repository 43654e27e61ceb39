/** State of the twins on this machine. */

import { daemon } from "../../lib/daemon-state.js";
import * as operations from "../../lib/operations.js";

const FRESH_MS = 1000;

/** Prefix of a twin's routes; "" for the brainstem. */
export const routesOf = (key) => (key ? `/twins/${encodeURIComponent(key)}` : "");

class Twins extends EventTarget {
  rows = [];
  unreadable = [];
  known = false;
  #at = -Infinity; // by the clock of the page, which begins at 0
  #text = "";

  /** Keeps the list as long as the page lives: it is asked for when the right to see it comes. */
  start() {
    const learn = () => (daemon.reads ? this.look().catch(calm) : this.#take({ twins: [] }, false));
    daemon.addEventListener("operator", learn);
    daemon.addEventListener("back", () => daemon.reads && learn());
    learn();
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

  /** Asks anew without waiting; views of the list get the event. */
  touch() {
    this.look().catch(calm);
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
    const text = JSON.stringify([twins, unreadable, known]);
    if (text === this.#text) return;
    this.#text = text;
    Object.assign(this, { rows: twins, unreadable, known });
    this.dispatchEvent(new Event("change"));
  }
}

export const twins = new Twins();

/** Ignores problems of the daemon: lists show their own, and the last known state stays. */
function calm(found) {
  if (found.code === undefined) throw found;
}
