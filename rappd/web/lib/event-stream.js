/** What happens on the daemon while the page is open: activity, and agents that came or failed, what was promised and failed. */

import { follow, get } from "./api.js";
import { daemon } from "./daemon-state.js";
import { agentsChanged } from "../components/agents/agent-import.js";
import { toast } from "../components/ui/toast.js";
import { failedFiles } from "../components/agents/failed-files.js";

const WAITS_MS = [500, 1000, 2000, 5000];

/** Told to this: `event`, with the activity event as `detail`; `machines`, when another machine came, went or asks. */
export const daemonEvents = new EventTarget();

/**
 * Follows the daemon's news (`tryIt(words)` starts a try) while the page is seen and has the operator's session. A hidden tab lets
 * go: browsers allow six connections to one place, and a tab in the background needs none.
 */
export async function followDaemonEvents(tryIt) {
  let lastId = "";
  for (let attempt = 0; ; attempt += 1) {
    await until(() => daemon.operator && daemon.awake && !document.hidden);
    const control = new AbortController();
    const leave = () => (document.hidden || !daemon.operator) && control.abort();
    document.addEventListener("visibilitychange", leave);
    daemon.addEventListener("change", leave);
    try {
      const headers = lastId ? { "Last-Event-ID": lastId } : {};
      for await (const { id, data } of follow("/activity/stream", { headers, signal: control.signal })) {
        if (id) lastId = id;
        attempt = 0;
        take(data, tryIt);
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

function take(data, tryIt) {
  if (data.type === "event") daemonEvents.dispatchEvent(new CustomEvent("event", { detail: data }));
  if (data.type === "machines") daemonEvents.dispatchEvent(new Event("machines"));
  if (data.type === "failed") failedFiles.add({ error: data.message, todo: data.do });
  if (data.type !== "agents") return;
  if (data.ok === false)
    failedFiles.add({
      error: data.message.replace(/^✗\s*/, ""),
      todo: data.do ?? "fix and save; it reloads by itself",
      file: data.file,
    });
  else {
    toast(data.message, { actions: data.try ? [{ label: "Try", run: () => tryIt(data.try) }] : [] });
    mend(data.message);
  }
  agentsChanged.dispatchEvent(new Event("change"));
}

async function mend(message) {
  if (!failedFiles.list.length) return;
  try {
    failedFiles.mended(message, (await get("/agents")).files);
  } catch (found) {
    if (found.code === undefined) throw found; // the trouble stays until it is dismissed
  }
}

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
