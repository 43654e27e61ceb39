/** Sessions with phones: the list, kept as long as the page lives. */

import { daemonEvents } from "../../lib/event-stream.js";
import { KeptState } from "../../lib/kept-state.js";
import * as operations from "../../lib/operations.js";

class Sessions extends KeptState {
  rows = [];

  /** The daemon says when something changed. */
  start() {
    super.start();
    daemonEvents.addEventListener("sessions", () => this.touchSoon());
  }

  /** Asks anew. Raises `Problem`. */
  async look() {
    const { sessions: rows = [] } = await operations.sessions.list();
    this.keep({ rows });
  }

  forget() {
    this.keep({ rows: [] });
  }

  /** The open session that phones join, or undefined. */
  get current() {
    return this.rows.find((row) => row.current && !row.closed);
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
