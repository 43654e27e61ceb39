/** Sessions with phones: the list, kept as long as the page lives. */

import { daemon } from "../../lib/daemon-state.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { ListState } from "../../lib/list-state.js";
import * as operations from "../../lib/operations.js";

const SOON_MS = 250;

class Sessions extends ListState {
  #soon = 0;

  /** Asks for the list when the right to see it comes, and when the daemon says that something changed. */
  start() {
    const learn = () => (daemon.operator ? this.touch() : this.take([]));
    daemon.addEventListener("operator", learn);
    daemon.addEventListener("back", learn);
    daemonEvents.addEventListener("sessions", () => this.#touchSoon());
    learn();
  }

  /** Asks anew without waiting; says `change` when something is different. */
  async touch() {
    try {
      const { sessions: rows = [] } = await operations.sessions.list();
      this.take(rows);
    } catch (found) {
      if (found.code === undefined) throw found; // the last known list stays
    }
  }

  /** The open session that phones join, or undefined. */
  get current() {
    return this.rows.find((row) => row.current && !row.closed);
  }

  #touchSoon() {
    if (this.#soon) return;
    this.#soon = setTimeout(() => {
      this.#soon = 0;
      if (daemon.operator) this.touch();
    }, SOON_MS);
  }
}

export const sessions = new Sessions();

/** The owner's name in a session. */
export const OWNER = "Owner";

/** `Session with Android, iPad` — of those who are here, without the owner. */
export function titleOf(here) {
  const others = here.filter((name) => name !== OWNER);
  return others.length ? `Session with ${others.join(", ")}` : "Session: no phone is here";
}
