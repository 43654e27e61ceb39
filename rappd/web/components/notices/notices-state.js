/** News that wait for the owner: the list, kept as long as the page lives, and the browser's own notices of them. */

import { get, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { ListState } from "../../lib/list-state.js";
import { store, stored } from "../../lib/storage.js";

const WANTED = "notify";

class Notices extends ListState {
  /** Asks for the list when the right to see it comes, and when the daemon says that something happened. */
  start() {
    const learn = () => (daemon.operator ? this.touch() : this.take([]));
    daemon.addEventListener("operator", learn);
    daemon.addEventListener("back", learn);
    for (const type of ["notice", "failed"])
      daemonEvents.addEventListener(type, ({ detail }) => {
        this.touch();
        this.#tell(detail);
      });
    for (const type of ["machines", "agents"]) daemonEvents.addEventListener(type, () => this.touch());
    learn();
  }

  /** Asks anew; says `change` when something is different. */
  async touch() {
    if (!daemon.operator) return;
    try {
      this.take((await get("/notices")).notices ?? []);
    } catch (found) {
      if (found.code === undefined) throw found; // the last known list stays
    }
  }

  /** Removes one, or all without a key. */
  async dismiss(key) {
    await post("/notices/dismiss", key ? { key } : { all: true });
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

export const notices = new Notices();
