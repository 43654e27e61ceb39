/** A run of a workflow in its session: how far it is, its controls, and the Coordinator's questions, folded to a line. */

import { actionButton, fill, h } from "../../lib/dom.js";

/** True while a run is neither done nor aborted. */
export const isUnderWay = (run) => Boolean(run) && ["running", "paused"].includes(run.status);

/** `Debate · step 2 of 4 · Debater A · paused` */
export function positionOf({ title, step, steps, participant, status }) {
  return [title, `step ${step} of ${steps}`, participant, status === "paused" && "paused"].filter(Boolean).join(" · ");
}

/** A bar with Pause or Go on, and Stop; `draw(run)` hides it where none is under way. `control(action)` performs one. */
export function runBar(control) {
  const words = h("p", { class: "run-position", role: "status" });
  const actions = h("div", { class: "run-actions" });
  const element = h("div", { class: "run-bar", hidden: true, role: "group", "aria-label": "Workflow" }, words, actions);
  const button = (text, action) => actionButton(text, () => control(action), "secondary small");
  let drawn = "";
  return {
    element,
    draw(run) {
      element.hidden = !isUnderWay(run);
      if (element.hidden) {
        drawn = "";
        return;
      }
      const told = positionOf(run);
      if (words.textContent !== told) words.textContent = told; // the same words anew would be said anew
      if (drawn === run.status) return;
      const held = actions.contains(document.activeElement);
      drawn = run.status;
      fill(actions, run.status === "paused" ? button("Go on", "resume") : button("Pause", "pause"), button("Stop", "abort"));
      if (held) actions.querySelector("button").focus();
    },
  };
}

/** The question of a step, closed: `Coordinator asks Debater A · step 2 of 4`. */
export function cueView({ by, to, text, workflow }) {
  const step = workflow ? ` · step ${workflow.step} of ${workflow.steps}` : "";
  return h(
    "details",
    { class: "fold cue" },
    h("summary", {}, `${by} asks ${to || "the computer"}${step}`),
    h("p", { class: "cue-text soft" }, text),
  );
}
