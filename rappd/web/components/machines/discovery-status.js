/** Status of discovery: each source of addresses, what it found, and its problems. */

import { count, stripControl } from "../../lib/format.js";
import { h } from "../../lib/dom.js";

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
export function discoverySources(sources) {
  return h(
    "dl",
    { class: "ways" },
    sources.map(({ rung: source, found, trouble }) =>
      h(
        "div",
        {},
        h("dt", {}, TITLES[source] ?? stripControl(source)),
        h(
          "dd",
          {},
          trouble
            ? [h("span", { class: "sign warn" }, "! "), stripControl(trouble)]
            : found
              ? count(found, "machine")
              : (NOTHING[source] ?? "nothing"),
        ),
      ),
    ),
  );
}

/** Problems of discovery as lines above the list; null for none. */
export function discoveryProblems(sources, listener) {
  const lines = sources
    .filter(({ trouble }) => trouble && !trouble.startsWith("switched off")) // as its owner wants it
    .map(
      ({ rung: source, trouble }) => `${TITLES[source] ?? stripControl(source)}: ${stripControl(trouble)}`,
    );
  if (listener.known && !listener.open)
    lines.push("Other machines cannot reach this one: it does not listen on the network.");
  if (!lines.length) return null;
  return lines.map((line) =>
    h("p", { class: "discovery-problem" }, h("span", { class: "sign warn" }, "! "), line),
  );
}
