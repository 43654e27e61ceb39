/** State of other machines: peers, discovered ones, pairing requests, and discovery. */

import { daemonEvents } from "../../lib/event-stream.js";
import { KeptState } from "../../lib/kept-state.js";
import { peers } from "../../lib/operations.js";

const FRESH_MS = 500;
const NOTHING = { peers: [], asking: [], sources: [], listener: { port: 0, open: false }, self: {} };

class Machines extends KeptState {
  /** Every row of `GET /peers`: paired ones first, then found, written-down and published ones. */
  rows = [];
  asking = [];
  sources = [];
  listener = NOTHING.listener;
  self = NOTHING.self;
  known = false;
  #at = -Infinity; // by the clock of the page, which begins at 0

  /** The daemon says when something came, went or asks. */
  start() {
    super.start();
    daemonEvents.addEventListener("machines", () => this.touchSoon());
  }

  /** Asks anew. Says `change` when something is different, `asks` when somebody new asks. Raises `Problem`. */
  async look() {
    this.#take(await peers.list(), true);
    return this;
  }

  /** Returns the state, fetched again unless it is fresh. */
  list() {
    return performance.now() - this.#at < FRESH_MS ? this : this.look();
  }

  forget() {
    this.#take({}, false);
  }

  get paired() {
    return this.rows.filter((row) => row.paired);
  }

  /** The row of a paired machine by its key, or undefined. */
  peer(fingerprint) {
    return this.rows.find((row) => row.paired && row.fingerprint === fingerprint);
  }

  #take(
    { peers = [], asking = [], sources = [], listener = NOTHING.listener, self = NOTHING.self },
    known,
  ) {
    this.#at = known ? performance.now() : -Infinity;
    const before = new Set(this.asking.map(({ attempt }) => attempt));
    this.asking = asking;
    const lasting = asking.map(({ seconds_left: _, ...rest }) => rest);
    const fields = { rows: peers, sources, listener, self, known };
    if (!this.keep(fields, { ...fields, lasting })) return;
    for (const one of asking.filter(({ attempt }) => !before.has(attempt)))
      this.dispatchEvent(new CustomEvent("asks", { detail: one }));
  }
}

export const machines = new Machines();
