/** The plan of a restore, as the computer's page and a phone show it: the snapshot, and what would be written where. */

import { bytes, count, stripControl } from "../../lib/format.js";
import { h } from "../../lib/dom.js";
import { sign, when } from "./snapshot-words.js";

const CATEGORIES = {
  twins: "Files of twins",
  agents: "Agents",
  core: "Soul and kernel",
  data: "Memory",
  global_state: "Files of the home",
  peer_twins: "Twins elsewhere",
};
const ACTIONS = { create: "new", overwrite: "replaced", skip: "stays", fail: "cannot be done" };

/** The head of the plan: the snapshot's origin, and whether it is whole. */
export function headOf({ egg, seal }) {
  const signed =
    seal.standing === "self"
      ? [sign("✓", "good"), "Signed by this machine"]
      : seal.standing === "trusted"
        ? [sign("✓", "good"), `Signed by ${stripControl(seal.signer_name)}`]
        : [sign("!", "warn"), "Not signed by anybody you trust: its code waits for your approval"];
  return h(
    "div",
    { class: "plan-head" },
    h("p", {}, [bytes(egg.size), egg.packed_at && `taken ${when(egg.packed_at)}`].filter(Boolean).join(", ")),
    h("p", {}, seal.whole ? [sign("✓", "good"), "Complete"] : [sign("!", "warn"), "Nobody can tell whether it is complete"]),
    h("p", {}, signed),
  );
}

/** Rows of what would be written, or was: here by kind of file, and on each other machine. */
export function rowsOf(plan) {
  const rows = Object.entries(CATEGORIES).filter(([name]) => Object.values(plan.categories[name]).some(Boolean));
  return [
    rows.length > 0 &&
      h(
        "table",
        { class: "nb-plan" },
        h("caption", { class: "visually-hidden" }, "What would be written"),
        h("thead", {}, h("tr", {}, ["What", "New", "Replaced", "Stay"].map((title) => h("th", { scope: "col" }, title)))),
        h(
          "tbody",
          {},
          rows.map(([name, title]) => {
            const { created, overwritten, skipped } = plan.categories[name];
            return h("tr", {}, h("th", { scope: "row" }, title), [created, overwritten, skipped].map((number) => h("td", {}, String(number))));
          }),
        ),
      ),
    plan.peers.map(peerBlock),
    plan.boot?.length > 0 && !plan.nothing_to_do && h("p", { class: "soft" }, `${count(plan.boot.length, "twin")} will be started again, as before.`),
    plan.left_archived > 0 && h("p", { class: "soft" }, `${count(plan.left_archived, "archived twin")} stay in the snapshot.`),
    plan.failed ? null : problems(plan.problems),
  ];
}

function peerBlock({ name, twins: steps, agents, problem }) {
  return h(
    "section",
    { class: "nb-peer" },
    h("h3", {}, h("bdi", {}, stripControl(name))),
    problem && h("p", {}, sign("✗", "bad"), stripControl(problem)),
    h(
      "ul",
      { class: "paths" },
      [...steps, ...agents].map(({ name: one, action, why }) =>
        h("li", {}, h("bdi", {}, stripControl(one)), h("span", { class: "soft" }, ` ${ACTIONS[action] ?? action}${why && !problem ? `, ${stripControl(why)}` : ""}`)),
      ),
    ),
  );
}

/** A line for each of `texts`. */
export const problems = (texts) =>
  texts.length > 0 && h("ul", { class: "paths", role: "list" }, texts.map((text) => h("li", {}, sign("✗", "bad"), stripControl(text))));

/** Parts that would be written: units of this machine, and twins and agents of others. */
export function partsOf({ local, peers }) {
  const here = local.filter((one) => one.created + one.overwritten + (one.quarantined ?? 0) > 0).length;
  const there = peers.flatMap((peer) => [...peer.twins, ...peer.agents]).filter(({ action }) => action === "create" || action === "overwrite").length;
  return here + there;
}
