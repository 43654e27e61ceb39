/** Machines: pairing requests, peers, discovered machines, published brainstems, and the status of discovery. */

import { staleList } from "../ui/stale-list.js";
import { fill, h, withCode } from "../../lib/dom.js";
import { askingCard, machineCard } from "./machine-card.js";
import { legacyNotice } from "./legacy-notice.js";
import { keyedList } from "../ui/keyed-list.js";
import { openAddAddress } from "./machine-dialogs.js";
import { discoveryProblems, discoverySources } from "./discovery-status.js";
import { stripControl } from "../../lib/format.js";
import { isLive, nameOf, selectorOf } from "./machine-words.js";
import { machines } from "./machines-state.js";
import { menuButton } from "../ui/menu.js";
import { openShowCode, openTypeCode } from "../pairing/pairing-code.js";

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
  h("button", { type: "button", class: kind, onclick: openAddAddress }, "Add by address");

const byCode = () =>
  menuButton("Pair with a code", "Pair with a code", () => [
    { label: "Show a code", run: openShowCode },
    { label: "Type a code", run: openTypeCode },
  ]);
