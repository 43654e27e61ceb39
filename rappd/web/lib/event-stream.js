/** Event stream of the daemon: activity, agents that were loaded or failed, deferred failures. */

import { follow } from "./api.js";
import { daemon } from "./daemon-state.js";
import { stored } from "./storage.js";

const WAITS_MS = [500, 1000, 2000, 5000];

/**
 * Dispatches each message of the stream as an event of its type (`event`, `machines`, `devices`, `agents`, `failed`,
 * `notice`, `neighborhood`, `security`), with the message as `detail`.
 */
export const daemonEvents = new EventTarget();

/**
 * Follows the stream while the page is visible and has the operator's session. A hidden tab disconnects, unless it shows
 * notices (`notices.wanted`): browsers allow six connections to one host.
 */
export async function followDaemonEvents() {
  let lastId = "";
  for (let attempt = 0; ; attempt += 1) {
    await until(() => daemon.operator && daemon.awake && !unseen());
    const control = new AbortController();
    const leave = () => (unseen() || !daemon.operator) && control.abort();
    document.addEventListener("visibilitychange", leave);
    daemon.addEventListener("change", leave);
    try {
      const headers = lastId ? { "Last-Event-ID": lastId } : {};
      for await (const { id, data } of follow("/activity/stream", { headers, signal: control.signal })) {
        if (id) lastId = id;
        attempt = 0;
        daemonEvents.dispatchEvent(new CustomEvent(data.type, { detail: data }));
      }
    } catch (found) {
      if (found.name !== "AbortError" && found.code === undefined) throw found;
    } finally {
      document.removeEventListener("visibilitychange", leave);
      daemon.removeEventListener("change", leave);
    }
    await new Promise((resolve) => setTimeout(resolve, WAITS_MS[Math.min(attempt, WAITS_MS.length - 1)]));
  }
}

const unseen = () => document.hidden && stored("notify", false) !== true;

function until(condition) {
  return new Promise((resolve) => {
    const look = () => {
      if (!condition()) return;
      daemon.removeEventListener("change", look);
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    daemon.addEventListener("change", look);
    document.addEventListener("visibilitychange", look);
    look();
  });
}
