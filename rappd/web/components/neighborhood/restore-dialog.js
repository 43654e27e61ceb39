/** Restoring a snapshot: its plan, here and on each other machine; the approval of exactly that; and how far it is. */

import { Problem } from "../../lib/api.js";
import { count, stripControl } from "../../lib/format.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { problemView } from "../ui/problem.js";
import { openDialog } from "../ui/dialog.js";
import { announce } from "../../lib/live-region.js";
import * as operations from "../../lib/operations.js";
import { twins } from "../twins/twins-state.js";
import { sign } from "./snapshot-words.js";
import { headOf, partsOf, problems, rowsOf } from "./restore-plan.js";
import { neighborhood } from "./neighborhood-state.js";
import { workProgress } from "./work-progress.js";

const TARGETS = {
  "in-place": ["In place", "Each machine gets its own part back."],
  "local-simulate": ["As a simulation", "Other machines' twins go into a folder here; no other machine is touched."],
};
const FLAGS = {
  overwrite_twins: "Replace files of twins here",
  overwrite_peer_twins: "Replace twins on other machines",
  overwrite_agents: "Replace agents",
  overwrite_core: "Replace the soul",
  overwrite_data: "Replace the memory",
  overwrite_global_state: "Replace kept files of the home",
  restore_archived: "Archived twins, too",
};
/** Opens the plan of the snapshot `row`; `changed()` after a restore. */
export function openRestore(row, changed) {
  const name = stripControl(row.name);
  const options = { target: "in-place" };
  const plan = { now: null };
  const id = crypto.randomUUID(); // the plan waits under it, for phones that may answer, too
  let begun = false;
  const head = h("div", {});
  const body = h("div", {});
  const errorPlace = h("div", {});
  const foot = h("div", { class: "dialog-foot" });
  const choices = chooser(options, () => again());
  const dialog = openDialog({
    title: `Restore ${name}`,
    build: () => h("div", { class: "dialog-body" }, choices, head, body, errorPlace, foot),
    closed: () => begun || letGo(id),
  });
  dialog.classList.add("plan-dialog");
  again();

  async function again(why = "") {
    fill(foot);
    fill(errorPlace, h("p", { class: "soft" }, "Reading the snapshot and asking the machines…"));
    const wanted = JSON.stringify(options);
    try {
      const found = await operations.snapshots.plan({ snapshot: row.path, options, id });
      if (!dialog.open) letGo(id); // closed before the plan was there
      if (wanted !== JSON.stringify(options)) return; // chosen anew meanwhile
      plan.now = found.plan;
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      return fill(errorPlace, problemView(found));
    }
    fill(errorPlace, why && h("p", { class: "note" }, sign("!", "warn"), why));
    fill(head, headOf(plan.now));
    fill(body, rowsOf(plan.now));
    const settled = plan.now.nothing_to_do;
    const parts = partsOf(plan.now); // none where twins are only started again, or files only released
    const close = actionButton(settled ? "Close" : "Cancel", () => dialog.close());
    const hatch = actionButton(parts ? `Hatch ${count(parts, "part")}` : "Restore", restore, "primary");
    fill(
      foot,
      h("p", {}, settled ? "Nothing would be written: all of it is here, or stays yours." : "Nothing is written yet."),
      h("div", { class: "dialog-actions" }, close, !settled && hatch),
    );
    announce(`${why} ${foot.querySelector("p").textContent}`);
  }

  async function restore() {
    const bars = workProgress();
    const draw = () => bars.show(neighborhood.work);
    choices.disabled = begun = true;
    fill(foot);
    fill(errorPlace, bars.element);
    neighborhood.addEventListener("change", draw);
    try {
      const json = { snapshot: row.path, options, approved: plan.now.digest, id };
      const { hatched } = await neighborhood.begin("restore", json);
      twins.touch();
      changed();
      if (dialog.open) ended(hatched);
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      choices.disabled = begun = false;
      if (!dialog.open) letGo(id);
      if (found.code === "plan_changed")
        return again("Something changed since you saw the plan; nothing was written. This is the plan now.");
      fill(errorPlace, problemView(found));
      fill(foot, closing());
    } finally {
      neighborhood.removeEventListener("change", draw);
    }
  }

  function ended(done) {
    const failed = done.failed.length;
    const words = failed ? `Restored, but ${count(failed, "part")} failed; run it again for what is left.` : "Restored.";
    choices.hidden = true;
    fill(head, h("p", {}, sign(failed ? "!" : "✓", failed ? "warn" : "good"), words));
    fill(body, rowsOf(done), heldCode(done), done.receipts.length > 0 && h("p", {}, h("a", { href: "#/twins/eggs", onclick: () => dialog.close() }, "Undo it under Twins › Eggs")));
    fill(errorPlace, problems(done.failed));
    fill(foot, closing());
    announce(words);
  }

  function closing() {
    return h("div", { class: "dialog-actions" }, actionButton("Close", () => dialog.close()));
  }
}

/** The plan does not wait any more; otherwise it is forgotten after a day. */
async function letGo(id) {
  try {
    await operations.snapshots.letGo({ id });
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
  }
}

/** Target and flags as one fieldset; what is chosen changes `options`, then `again()`. */
function chooser(options, again) {
  const radio = ([value, [title, about]]) => {
    const id = `restore-${value}`;
    const input = h("input", { type: "radio", name: "restore-target", id, value, checked: value === options.target });
    input.addEventListener("change", () => ((options.target = value), again()));
    return h("label", { class: "choice-line", for: id }, input, h("span", {}, title, h("span", { class: "soft" }, ` ${about}`)));
  };
  const box = ([flag, title]) => {
    const id = `restore-${flag}`;
    const input = h("input", { type: "checkbox", id });
    input.addEventListener("change", () => ((options[flag] = input.checked), again()));
    return h("label", { class: "choice-line", for: id }, input, h("span", {}, title));
  };
  return h(
    "fieldset",
    { class: "choices nb-restore" },
    h("legend", {}, "Where to"),
    Object.entries(TARGETS).map(radio),
    h("details", { class: "fold" }, h("summary", {}, "What is there stays, unless…"), Object.entries(FLAGS).map(box)),
  );
}

function heldCode({ local }) {
  const held = local.reduce((sum, one) => sum + (one.quarantined ?? 0), 0);
  return held > 0 && h("p", {}, sign("!", "warn"), `${count(held, "code file")} wait for your approval: kept, not run.`);
}
