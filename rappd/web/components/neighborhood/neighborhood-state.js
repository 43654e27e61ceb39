/** State of the neighborhood: its machines, their health, the snapshots, and the work that is under way. */

import { Problem } from "../../lib/api.js";
import * as operations from "../../lib/operations.js";

const POLL_MS = 1000;
const FRESH_MS = 60_000;

class Neighborhood extends EventTarget {
  members = [];
  snapshots = [];
  /** The schedule of snapshots; null without one. */
  schedule = null;
  /** By the name of a machine; empty before the first probe. */
  probes = new Map();
  probing = false;
  /** The answer of `GET /neighborhood/work`; null when nothing is under way. */
  work = null;
  #probedAt = -Infinity;
  #own = 0;
  #poll = 0;

  /** Reads the machines and the snapshots; asks no machine. Raises `Problem`. */
  async look() {
    const { members, snapshots, schedule, work } = await operations.snapshots.overview();
    Object.assign(this, { members, snapshots, schedule });
    if (!this.#own) this.#take(work);
    return { members, snapshots };
  }

  /** Asks every machine, unless it was just done. Raises `Problem`. */
  async probe({ anew = false } = {}) {
    if (this.probing || (!anew && performance.now() - this.#probedAt < FRESH_MS)) return;
    this.probing = true;
    this.#say();
    try {
      const { members } = await operations.snapshots.probe();
      this.members = members;
      this.probes = new Map(members.map((row) => [row.name, row.probe]));
      this.#probedAt = performance.now();
    } finally {
      this.probing = false;
      this.#say();
    }
  }

  /** Begins long work (`take`, `drill` or `restore`) and gives its answer; meanwhile `work` says how far it is. Raises `Problem`. */
  async begin(verb, given) {
    this.#own += 1;
    try {
      return await operations.snapshots[verb]({ ...given, work: crypto.randomUUID() }, ({ work }) => this.#take(work));
    } finally {
      this.#own -= 1;
      this.#take(null);
    }
  }

  /** Cancels a snapshot; its stream says what came of it. Raises `Problem`. */
  cancel() {
    return operations.snapshots.cancel({ work: this.work?.id ?? "" });
  }

  /** Work that somebody else began is asked for until it ends; then `ended` is said. */
  #take(work) {
    const ended = this.work !== null && work === null;
    this.work = work;
    clearTimeout(this.#poll);
    if (work && !this.#own) this.#poll = setTimeout(() => this.#ask(), POLL_MS);
    this.#say();
    if (ended) this.dispatchEvent(new Event("ended"));
  }

  async #ask() {
    try {
      const { work } = await operations.snapshots.work();
      if (!this.#own) this.#take(work);
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      this.#poll = setTimeout(() => this.#ask(), 5 * POLL_MS);
    }
  }

  #say() {
    this.dispatchEvent(new Event("change"));
  }
}

export const neighborhood = new Neighborhood();
