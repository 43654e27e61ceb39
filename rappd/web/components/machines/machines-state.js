/** State of other machines: peers, discovered ones, pairing requests, and discovery. */

import { daemon } from "../../lib/daemon-state.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { peers } from "../../lib/operations.js";

const FRESH_MS = 500;
const NEWS_MS = 250;
const NOTHING = { peers: [], asking: [], sources: [], listener: { port: 0, open: false }, self: {} };

class Machines extends EventTarget {
  /** Every row of `GET /peers`: paired ones first, then found, written-down and published ones. */
  rows = [];
  asking = [];
  sources = [];
  listener = NOTHING.listener;
  self = NOTHING.self;
  known = false;
  #at = -Infinity; // by the clock of the page, which begins at 0
  #text = "";
  #soon = 0;

  /** Keeps the list as long as the page lives; the daemon says when something came, went or asks. */
  start() {
    const learn = () => (daemon.operator ? this.touch() : this.#take({}, false));
    daemon.addEventListener("operator", learn);
    daemon.addEventListener("back", () => daemon.operator && learn());
    daemonEvents.addEventListener("machines", () => this.touchSoon());
    learn();
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

  /** Asks anew without waiting; views of the list get the event. */
  touch() {
    this.look().catch(calm);
  }

  /** The same, a moment later and once for many news. */
  touchSoon() {
    if (this.#soon) return;
    this.#soon = setTimeout(() => {
      this.#soon = 0;
      if (daemon.operator) this.touch();
    }, NEWS_MS);
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
    const text = JSON.stringify([
      peers,
      asking.map(({ seconds_left: _, ...rest }) => rest),
      sources,
      listener,
      self,
      known,
    ]);
    const before = new Set(this.asking.map(({ attempt }) => attempt));
    this.asking = asking;
    if (text === this.#text) return;
    this.#text = text;
    Object.assign(this, { rows: peers, sources, listener, self, known });
    this.dispatchEvent(new Event("change"));
    for (const one of asking.filter(({ attempt }) => !before.has(attempt)))
      this.dispatchEvent(new CustomEvent("asks", { detail: one }));
  }
}

export const machines = new Machines();

/** Ignores problems of the daemon: lists show their own, and the last known state stays. */
function calm(found) {
  if (found.code === undefined) throw found;
}
