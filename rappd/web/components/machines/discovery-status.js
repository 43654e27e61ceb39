/** Status of discovery: each source of addresses, what it found, and its problems. */

import { count } from "../../lib/format.js";
import { h } from "../../lib/dom.js";
import { stripControl } from "./labels.js";

const TITLES = {
  nearby: "Local network",
  "last address": "Last known addresses",
  list: "peers.json",
  typed: "Added by hand",
};
const NOTHING = {
  nearby: "nothing found",
  "last address": "nothing found",
  list: "nothing found",
  typed: "nothing found",
};

/** All sources in order, as a list of terms. */
export function discoverySources(rungs) {
  return h(
    "dl",
    { class: "ways" },
    rungs.map(({ rung, found, trouble }) =>
      h(
        "div",
        {},
        h("dt", {}, TITLES[rung] ?? stripControl(rung)),
        h(
          "dd",
          {},
          trouble
            ? [h("span", { class: "sign warn" }, "! "), stripControl(trouble)]
            : found
              ? count(found, "machine")
              : (NOTHING[rung] ?? "nothing"),
        ),
      ),
    ),
  );
}

/** Problems of discovery as lines above the list; null for none. */
export function discoveryProblems(rungs, door) {
  const lines = rungs
    .filter(({ trouble }) => trouble && !trouble.startsWith("switched off")) // as its owner wants it
    .map(({ rung, trouble }) => `${TITLES[rung] ?? stripControl(rung)}: ${stripControl(trouble)}`);
  if (door.known && !door.open)
    lines.push("Other machines cannot reach this one: it does not listen on the network.");
  if (!lines.length) return null;
  return lines.map((line) => h("p", { class: "hindrance" }, h("span", { class: "sign warn" }, "! "), line));
}
