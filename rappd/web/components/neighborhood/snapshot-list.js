/** The snapshots, the newest first: what each holds, whether it can be restored, and two side by side. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { differences, summary } from "../eggs/egg-diff.js";
import { stripControl } from "../../lib/format.js";
import { attemptIn } from "../ui/problem.js";
import { announce } from "../../lib/live-region.js";
import * as operations from "../../lib/operations.js";
import { drillState, sign, sizes, when } from "./snapshot-words.js";
import { neighborhood } from "./neighborhood-state.js";
import { openRestore } from "./restore-dialog.js";

/** The rows of `snapshots`; `changed()` when one was tried or restored. */
export function snapshotList(snapshots, changed) {
  if (!snapshots.length) return h("p", { class: "soft" }, "There is no snapshot yet.");
  return [
    h("ul", { class: "rows nb-snapshots", role: "list" }, snapshots.map((one) => row(one, changed))),
    snapshots.filter(({ there }) => there).length > 1 && comparison(snapshots.filter(({ there }) => there)),
  ];
}

function row(one, changed) {
  const name = stripControl(one.name);
  const [mark, kind, words] = drillState(one);
  const errorPlace = h("div", {});
  const tryAgain = () =>
    attemptIn(errorPlace, async () => {
      const { snapshot } = await neighborhood.begin("drill", { snapshot: one.path });
      announce(`${name}: ${drillState(snapshot)[2]}`);
      changed();
    });
  return h(
    "li",
    { class: "line-row nb-snapshot", "data-name": name },
    h(
      "div",
      {},
      h("h3", {}, name),
      h("p", { class: "soft" }, `taken ${when(one.taken_at)}; ${sizes(one)}`),
      h("p", {}, sign(mark, kind), words),
      (one.drill?.apart ?? []).map((text) => h("p", { class: "soft" }, `Not a twin: ${stripControl(text)}`)),
    ),
    one.there &&
      h(
        "div",
        { class: "card-actions" },
        h("button", { type: "button", class: "quiet", "aria-label": `Try ${name} again`, onclick: tryAgain }, one.drill ? "Try again" : "Try it"),
        h(
          "button",
          { type: "button", class: "secondary", "aria-label": `Restore ${name}`, onclick: () => openRestore(one, changed) },
          "Restore…",
        ),
      ),
    errorPlace,
  );
}

function comparison(snapshots) {
  const errorPlace = h("div", {});
  const result = h("div", {});
  const pick = (label, chosen) =>
    h(
      "select",
      { "aria-label": label },
      snapshots.map(({ name, path }, at) => h("option", { value: path, selected: at === chosen }, stripControl(name))),
    );
  const [before, after] = [pick("Before", 1), pick("After", 0)];
  const compare = () =>
    attemptIn(errorPlace, async () => {
      const { diff } = await operations.snapshots.diff({ before: before.value, after: after.value });
      fill(result, differences(diff));
      announce(summary(diff));
    });
  return h(
    "details",
    { class: "fold nb-compare" },
    h("summary", {}, "Compare two"),
    h("div", { class: "nb-pick" }, before, after, actionButton("Compare", compare)),
    errorPlace,
    result,
  );
}
