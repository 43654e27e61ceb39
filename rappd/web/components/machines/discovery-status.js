/** How other machines are looked for: each way, what it found, and what is in its way. */

import { count } from "../../lib/format.js";
import { h } from "../../lib/dom.js";
import { stripControl } from "./labels.js";

const TITLES = {
  nearby: "Nearby",
  "last address": "Last address",
  list: "The list in peers.json",
  typed: "Typed addresses",
};
const NOTHING = {
  nearby: "no other machine is announced",
  "last address": "no peer was ever reached",
  list: "no address stands in it",
  typed: "no address was typed",
};

/** Every way in order, as a list of terms. */
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

/** What is in the way, in lines above the list; null when nothing is. */
export function discoveryProblems(rungs, door) {
  const lines = rungs
    .filter(({ trouble }) => trouble && !trouble.startsWith("switched off")) // as its owner wants it
    .map(({ rung, trouble }) => `${TITLES[rung] ?? stripControl(rung)}: ${stripControl(trouble)}`);
  if (door.known && !door.open)
    lines.push("The door for other machines is closed; they cannot reach this one.");
  if (!lines.length) return null;
  return lines.map((line) => h("p", { class: "hindrance" }, h("span", { class: "sign warn" }, "! "), line));
}
