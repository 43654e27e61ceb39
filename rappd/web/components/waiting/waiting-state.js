/** All that waits for the owner: the list, kept as long as the page lives, and the browser's own notices of news. */

import { daemonEvents } from "../../lib/event-stream.js";
import { KeptState } from "../../lib/kept-state.js";
import * as operations from "../../lib/operations.js";
import { store, stored } from "../../lib/storage.js";

const WANTED = "notify";
const LOOK_MS = 30_000; // a file that the command line approved tells no page

class Waiting extends KeptState {
  rows = [];

  /** Asks also when the daemon says that something happened, and now and then. */
  start() {
    super.start();
    for (const type of ["notice", "failed"])
      daemonEvents.addEventListener(type, ({ detail }) => {
        this.touch();
        this.#tell(detail);
      });
    for (const type of ["notice_gone", "machines", "agents", "devices"]) daemonEvents.addEventListener(type, () => this.touch());
    document.addEventListener("visibilitychange", () => document.hidden || this.touch());
    setInterval(() => document.hidden || this.touch(), LOOK_MS);
  }

  /** Asks anew. Raises `Problem`. */
  async look() {
    this.keep({ rows: (await operations.notices.waiting()).waiting ?? [] });
  }

  forget() {
    this.keep({ rows: [] });
  }

  /** Removes one of the news, or all of them without a key. */
  async dismiss(key) {
    await operations.notices.dismiss(key ? { key } : { all: true });
    await this.touch();
  }

  /** True where this browser can show notices of its own. */
  get possible() {
    return "Notification" in window && Notification.permission !== "denied";
  }

  /** True while this browser shows them, also when another tab is in front. */
  get wanted() {
    return this.possible && Notification.permission === "granted" && stored(WANTED, false) === true;
  }

  /** Switches them on, after the browser has asked, or off. */
  async want(on) {
    const allowed = on && (await Notification.requestPermission()) === "granted";
    store(WANTED, allowed || null);
    this.dispatchEvent(new Event("change"));
  }

  #tell({ message, do: todo = "", key }) {
    if (this.wanted && document.hidden) new Notification(message, { body: todo, tag: key });
  }
}

export const waiting = new Waiting();
