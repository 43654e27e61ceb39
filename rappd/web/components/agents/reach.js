/** The reach of an agent: what it declares that it needs, to which it is held, and what it was refused. */

import { daemon } from "../../lib/daemon-state.js";
import { h } from "../../lib/dom.js";
import { count, stripControl } from "../../lib/format.js";
import * as operations from "../../lib/operations.js";

const VERBS = { read: "reading", write: "changing", hosts: "talking to", programs: "starting", variables: "using" };

/** A card's lines: "Reads ~/Pictures; talks to example.com.", and what is wrong with that. */
export function reachOf({ reach = [], unheld, exceeded }) {
  const text = reach.map(stripControl).join("; ");
  return [
    text && h("p", { class: "soft reach" }, `${text.replace(/^./, (first) => first.toUpperCase())}.`),
    unheld && warning(`${unheld}.`),
    exceeded > 0 &&
      warning(`${count(exceeded, "call")} failed: it wanted more than it says that it needs.`),
  ];
}

/** The same for the detail panel, with what its calls asked for, refused things first. */
export function reachDetail(card, key = "") {
  const asked = h("div", {});
  if (daemon.operator && card.needs && !card.quarantined) show(asked, card.name, key);
  return [h("h3", {}, "Reach"), reachOf(card), asked];
}

async function show(place, name, key) {
  const { uses } = await operations.agents.needs({ twin: key, name }).catch(() => ({ uses: [] }));
  if (!uses.length) return;
  place.append(
    h("p", { class: "soft" }, "Asked for so far:"),
    h("ul", { class: "paths" }, uses.map(row)),
  );
}

const row = ({ kind, what, given, times }) =>
  h(
    "li",
    {},
    h("span", { class: given ? "sign good" : "sign bad" }, given ? "✓ " : "✗ "),
    h("span", { class: "path" }, `${VERBS[kind]} ${stripControl(what)}`),
    h("span", { class: "soft" }, `${given ? "" : "refused, "}${count(times, "call")}`),
  );

const warning = (text) => h("p", { class: "reason" }, h("span", { class: "sign warn" }, "! "), text);
