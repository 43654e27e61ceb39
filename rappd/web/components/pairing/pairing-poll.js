/** Follows one pairing in the daemon until it is over. */

import { Problem } from "../../lib/api.js";
import { pairings } from "../../lib/operations.js";
import { isLive } from "../machines/machine-words.js";

const AGAIN_MS = 1000;

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
        const { attempt, state } = now;
        const { pairing } = await pairings.show({ attempt, state }, { signal: control.signal });
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

  return {
    get row() {
      return now;
    },
    tell: async (same, whose) =>
      take((await pairings.confirm({ attempt: now.attempt, same, ...(whose && { whose }) })).pairing),
    stop: async () => take((await pairings.stop({ attempt: now.attempt })).pairing),
    close: () => control.abort(),
  };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
const lost = (found) => ({ state: "stopped", trouble: found.message, do: found.todo, seconds_left: 0 });
