/** Imports eggs that were dropped or chosen, one after the other. */

import { daemon } from "../../lib/daemon-state.js";
import { actionButton, h, icon } from "../../lib/dom.js";
import { withSignatures } from "./egg-upload.js";
import { openPlan } from "./plan-dialog.js";
import { failedFiles } from "../agents/failed-files.js";

const waiting = []; // [file, its signature]
let open = false;

/** Opens each file's plan; the next when the one before was decided. A `.sig` goes with the file it is of. */
export function openEggs(files) {
  if (!daemon.operator) {
    failedFiles.add({
      error: "Opening eggs needs the operator's link.",
      todo: `\`${daemon.command}\``,
      file: "",
    });
    return;
  }
  waiting.push(...withSignatures(files));
  if (!open) next();
}

/** A button that does what a drop does. `taken(files)` may do something else with them. */
export function chooseEgg(label, { taken = openEggs, primary = false } = {}) {
  const input = h("input", { type: "file", multiple: true, hidden: true, "aria-label": label });
  input.addEventListener("change", () => {
    taken([...input.files]);
    input.value = "";
  });
  return h(
    "span",
    {},
    input,
    actionButton([icon("file"), label], () => input.click(), primary ? "primary" : "secondary"),
  );
}

function next() {
  const taken = waiting.shift();
  open = Boolean(taken);
  if (taken) openPlan(taken[0], next, taken[1]);
}
