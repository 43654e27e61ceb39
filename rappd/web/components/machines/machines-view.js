/** Machines: pairing requests, peers, discovered machines, published brainstems, and the status of discovery. */

import { actionButton, fill, h, withCode } from "../../lib/dom.js";
import { count, joinNames, stripControl } from "../../lib/format.js";
import { legacy } from "../../lib/operations.js";
import { openShowCode, openTypeCode } from "../pairing/pairing-code.js";
import { keyedList } from "../ui/keyed-list.js";
import { menuButton } from "../ui/menu.js";
import { attemptIn } from "../ui/problem.js";
import { staleList } from "../ui/stale-list.js";
import { toast } from "../ui/toast.js";
import { askingCard, machineCard } from "./machine-card.js";
import { openAddAddress } from "./machine-dialogs.js";
import { isLive, nameOf, selectorOf } from "./machine-words.js";
import { machines } from "./machines-state.js";

const LOOK_MS = 5000;
const MANY = 9; // from so many on one may look for a name

/** Fills `place`; `close()` when done. */
export function machinesView(place) {
  const groups = [
    ["Paired", keyedList("ul", "cards", selectorOf, machineCard), (row) => row.paired, "visually-hidden"],
    [
      "Found, not trusted",
      keyedList("ul", "cards", selectorOf, machineCard),
      (row) => !row.paired && !row.legacy,
    ],
    ["Published brainstems and A2A agents", keyedList("ul", "cards", selectorOf, machineCard), (row) => row.legacy],
  ].map(([title, list, fits, look = ""]) => ({ list, fits, heading: h("h2", { class: look }, title), element: list.element }));
  const asking = keyedList("ul", "cards asking", ({ attempt }) => attempt, askingCard);
  const sought = h("input", {
    type: "search",
    id: "find-machine",
    placeholder: "Find a machine",
    "aria-label": "Find a machine",
  });
  const hits = h("p", { class: "soft", role: "status" });
  const own = h("p", { class: "soft own-line" });
  const controls = h(
    "div",
    { class: "twin-controls", hidden: true }, // until it is known whether there are machines
    addAddress("secondary"),
    byCode(),
    sought,
  );
  const troubles = h("div", {});
  const legacy = legacyNotice();
  const inside = h("div", {});
  const looked = h("details", { class: "fold" }, h("summary", {}, "How machines are found"));
  const lists = h(
    "div",
    { class: "machine-lists" },
    hits,
    groups.map(({ heading, element }) => [heading, element]),
    looked,
  );
  const problems = h("div", {});
  const lookedFor = h("div", {});
  const empty = h(
    "div",
    { class: "no-twins" },
    h("p", { class: "greeting" }, "No other machine yet."),
    h("p", {}, withCode("Run `make start` on another machine.")),
    h("div", { class: "twin-controls" }, addAddress("primary"), byCode()), // made once: its menu stays open
    problems,
    h("h2", { class: "looked" }, "Looked in"),
    lookedFor,
  );
  const body = h("div", {});
  fill(inside, asking.element, troubles, legacy.element, empty, lists);
  fill(place, own, controls, body);

  const draw = () => {
    const { rows, self } = machines;
    const none = rows.length === 0;
    const wanted = rows.length >= MANY ? stripControl(sought.value).trim().toLowerCase() : "";
    const fitting = wanted ? rows.filter((row) => sayings(row).includes(wanted)) : rows;
    fill(
      own,
      self.name && [
        "This is ",
        h("bdi", {}, nameOf(self)),
        ", key ",
        h("code", {}, self.short),
        machines.listener.open && `, port ${machines.listener.port}`,
        ".",
      ],
    );
    sought.hidden = rows.length < MANY;
    controls.hidden = none;
    lists.hidden = none;
    empty.hidden = !none;
    asking.show(machines.asking.filter(isLive));
    const way = JSON.stringify([machines.sources, machines.listener, none]);
    if (way !== drawn) {
      drawn = way;
      fill(
        troubles,
        !none && discoveryProblems(machines.sources, { ...machines.listener, known: machines.known }),
      );
      fill(looked, looked.firstChild, !none && discoverySources(machines.sources));
      fill(problems, none && discoveryProblems([], { ...machines.listener, known: machines.known }));
      fill(lookedFor, none && discoverySources(machines.sources));
    }
    for (const { list, fits, heading } of groups) {
      const some = fitting.filter(fits);
      heading.hidden = some.length === 0;
      list.show(some);
    }
    fill(hits, wanted && `${fitting.length} of ${rows.length}`);
  };
  let drawn = "";

  const list = staleList(body, {
    name: "machines",
    load: async () => {
      await Promise.all([machines.list(), legacy.look()]);
      return { known: true };
    },
    draw: () => (draw(), inside),
  });
  const look = setInterval(() => {
    if (document.hidden) return;
    machines.touch();
    legacy.look();
    draw(); // "last seen" grows older while nothing changes
  }, LOOK_MS);
  sought.addEventListener("input", draw);
  machines.addEventListener("change", draw);
  return {
    close() {
      clearInterval(look);
      machines.removeEventListener("change", draw);
      for (const one of [asking, ...groups.map((group) => group.list)]) one.close();
      list.close();
    },
  };
}

const sayings = (row) => `${row.name} ${row.short} ${row.address}`.toLowerCase();

const addAddress = (kind) =>
  actionButton("Add by address", openAddAddress, kind);

const byCode = () =>
  menuButton("Pair with a code", "Pair with a code", () => [
    { label: "Show a code", run: openShowCode },
    { label: "Type a code", run: openTypeCode },
  ]);

/** An element that is empty while the listener is closed. `look()` asks anew. */
function legacyNotice() {
  const element = h("div", { class: "legacy" });
  const errorPlace = h("div", {});
  let drawn = "";
  const draw = ({ open = false, addresses = [], listening = [] } = {}) => {
    const text = JSON.stringify([open, addresses, listening]);
    if (text === drawn) return;
    drawn = text;
    fill(
      element,
      open && [
        h(
          "p",
          {},
          h("span", { class: "sign warn" }, "! "),
          `The legacy listener is open to ${joinNames(addresses.map(stripControl), 6)}. Its traffic is not protected.`,
        ),
        actionButton("Close", close, "secondary", { "aria-label": "Close the legacy listener" }),
        errorPlace,
      ],
    );
  };
  const close = () =>
    attemptIn(errorPlace, async () => {
      draw((await legacy.close()).legacy);
      toast("The legacy listener is closed.");
    });
  const look = async () => {
    try {
      draw((await legacy.show()).legacy);
    } catch (found) {
      if (found.code === undefined) throw found; // the list says what is wrong
    }
  };
  return { element, look };
}

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
function discoverySources(sources) {
  return h(
    "dl",
    { class: "ways" },
    sources.map(({ source, found, trouble }) =>
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
function discoveryProblems(sources, listener) {
  const lines = sources
    .filter(({ trouble }) => trouble && !trouble.startsWith("switched off")) // as its owner wants it
    .map(
      ({ source, trouble }) => `${TITLES[source] ?? stripControl(source)}: ${stripControl(trouble)}`,
    );
  if (listener.known && !listener.open)
    lines.push("Other machines cannot reach this one: it does not listen on the network.");
  if (!lines.length) return null;
  return lines.map((line) =>
    h("p", { class: "discovery-problem" }, h("span", { class: "sign warn" }, "! "), line),
  );
}
