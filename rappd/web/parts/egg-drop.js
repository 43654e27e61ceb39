/** Eggs on their way in: dropped on the page or chosen, opened one after the other. */

import { desk } from "./desk.js";
import { h, icon } from "./dom.js";
import { openPlan } from "./plan-sheet.js";
import { troubles } from "./troubles.js";

const waiting = [];
let open = false;

/** Opens each file's plan; the next when the one before was decided. */
export function openEggs(files) {
  if (!desk.operator) {
    troubles.add({ error: "Opening eggs needs the operator's link.", todo: `\`${desk.command}\``, file: "" });
    return;
  }
  waiting.push(...files);
  if (!open) next();
}

/** A button that does what a drop does. `taken(files)` may do something else with them. */
export function chooseEgg(label, { taken = openEggs, primary = false, multiple = true } = {}) {
  const input = h("input", { type: "file", multiple, hidden: true, "aria-label": label });
  input.addEventListener("change", () => {
    taken([...input.files]);
    input.value = "";
  });
  return h(
    "span",
    {},
    input,
    h(
      "button",
      { type: "button", class: primary ? "primary" : "secondary", onclick: () => input.click() },
      icon("file"),
      label,
    ),
  );
}

function next() {
  const file = waiting.shift();
  open = Boolean(file);
  if (file) openPlan(file, next);
}
