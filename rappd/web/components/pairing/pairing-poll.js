/** Follows one pairing in the daemon until it is over. */

import { Problem, ask } from "../../lib/api.js";
import { isLive } from "../machines/labels.js";

const AGAIN_MS = 1000;

const pathOf = (attempt) => `/pairings/${encodeURIComponent(attempt)}`;

/**
 * Tells `changed(row)` of every state from `row` on; each question waits in the daemon for another state.
 * `tell(same, whose)` is the owner's word, `stop()` wants no pairing: both resolve to the row that came of it.
 */
export function followPairing(row, changed) {
  const control = new AbortController();
  let now = row;
  const take = (newer) => {
    if (!isLive(now)) return now;
    now = newer;
    changed(now);
    return now;
  };
  watch();

  async function watch() {
    while (isLive(now) && !control.signal.aborted) {
      const asked = performance.now();
      try {
        const path = `${pathOf(now.attempt)}?state=${now.state}`;
        const { pairing } = await ask(path, { signal: control.signal });
        if (control.signal.aborted) return;
        const same = pairing.state === now.state;
        take(pairing);
        if (same && performance.now() - asked < AGAIN_MS) await pause();
      } catch (found) {
        if (found.name === "AbortError") return;
        if (!(found instanceof Problem)) throw found;
        if (found.status === 404) return take({ ...now, ...lost(found) });
        await pause(); // the daemon is away: its banner says so
      }
    }
  }

  const said = async (options) => {
    const { pairing } = await ask(pathOf(now.attempt), options);
    return take(pairing);
  };
  return {
    get row() {
      return now;
    },
    tell: (same, whose) => said({ method: "POST", json: { same, ...(whose && { whose }) } }),
    stop: () => said({ method: "DELETE" }),
    close: () => control.abort(),
  };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
const lost = (found) => ({ state: "stopped", trouble: found.message, do: found.todo, seconds_left: 0 });
