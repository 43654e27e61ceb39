/** The neighborhood as a picture that is a list: this machine, a line to each other one, and the twins in each. */

import { bytes, count } from "../../lib/format.js";
import { fill, h, icon, visuallyHidden } from "../../lib/dom.js";
import { nameOf, pageOf, stripControl } from "../machines/labels.js";
import { machines } from "../machines/machines-state.js";
import { pageOf as pageOfTwin } from "../twins/labels.js";
import { twins } from "../twins/twins-state.js";
import { neighborhood } from "./neighborhood-state.js";
import { sign, wayOf } from "./labels.js";

const MOST_TWINS = 12;

/** The element, drawn from `neighborhood`, `machines` and `twins`; `draw()` when one of them changed. */
export function neighborhoodPicture() {
  const element = h("div", { class: "neighborhood", role: "group" });
  let drawn = "";
  const draw = () => {
    const others = neighborhood.members.filter((row) => !row.self);
    const now = JSON.stringify([others, [...neighborhood.probes], neighborhood.probing, twins.rows, machines.self]);
    if (now === drawn) return; // what has the keyboard stays
    drawn = now;
    element.setAttribute("aria-label", `${nameOf(machines.self)} and ${count(others.length, "other machine")}`);
    fill(
      element,
      here(others.length),
      others.length > 0 && h("ul", { class: "nb-others", role: "list", "aria-label": "Other machines" }, others.map(other)),
    );
  };
  return { element, draw };
}

function here(others) {
  return h(
    "section",
    { class: `nb-machine self${others ? " linked" : ""}`, "aria-label": "This machine" },
    h("h3", {}, h("bdi", {}, nameOf(machines.self))),
    h("p", {}, sign("●", "good"), "this machine"),
    twinList(twins.rows.map(({ key, name, state }) => [h("a", { href: pageOfTwin(key) }, stripControl(name)), state])),
  );
}

function other(row) {
  const probe = neighborhood.probes.get(row.name);
  const { kind, mark, words } = health(row, probe);
  const known = row.paired && row.fingerprint;
  const named = h("bdi", {}, nameOf(row));
  return h(
    "li",
    { class: `nb-other ${kind === "good" ? "reached" : "unreached"}` },
    h("p", { class: "nb-link" }, h("span", {}, visuallyHidden("linked by "), wayOf(row))),
    h(
      "div",
      { class: "nb-machine" },
      h("h3", {}, known ? h("a", { href: pageOf(row) }, named) : named),
      h("p", {}, sign(mark, kind), words),
      probe?.reachable && probe.free_bytes > 0 && h("p", { class: "soft" }, `${bytes(probe.free_bytes)} free`),
      probe?.named && twinList(probe.named.map((name) => [stripControl(name), ""])),
    ),
  );
}

/** Says in words and with a mark if a snapshot can read a machine now. */
function health(row, probe) {
  if (probe?.reachable) return { kind: "good", mark: "✓", words: "can be read" };
  if (probe) return { kind: "bad", mark: "✗", words: stripControl(probe.detail) || "no answer" };
  if (neighborhood.probing) return { kind: "soft", mark: "·", words: "asking…" };
  if (row.trouble) return { kind: "bad", mark: "✗", words: stripControl(row.trouble) };
  return { kind: "soft", mark: "·", words: row.presence === "here" ? "here" : "not asked yet" };
}

function twinList(rows) {
  if (!rows.length) return h("p", { class: "soft" }, "no twins");
  const more = rows.length - MOST_TWINS;
  return h(
    "ul",
    { class: "nb-twins", role: "list", "aria-label": "Twins" },
    rows
      .slice(0, MOST_TWINS)
      .map(([name, state]) =>
        h("li", {}, icon("mark", "mark"), name, state && h("span", { class: "soft" }, state)),
      ),
    more > 0 && h("li", { class: "soft" }, `and ${more} more`),
  );
}
