/** Progress of an operation: its phase in per cent, amount, rate, and after three seconds the time left. */

import { bytes, duration } from "../../lib/format.js";
import { actionButton, fill, h } from "../../lib/dom.js";

const TELL_MS = 3000;
const PHASES = {
  upload: "sending",
  check: "checking",
  stage: "unpacking",
  save: "packing what is there",
  sync: "writing to the disk",
  move: "moving into place",
  look: "looking for secrets",
  pack: "packing",
};
const COUNTED = ["sync", "move"]; // files, not bytes

/**
 * A line that says `words` and, where one can cancel, how. `moved({phase, done, whole})` tells how far a phase
 * is; before it nobody knows. `say(words)` changes the words, `settled()` takes the button away.
 */
export function progressLine(words, { cancel = null } = {}) {
  const bar = h("progress", { "aria-label": words });
  const text = h("span", {}, words);
  const amount = h("span", { class: "soft" });
  const button = cancel && actionButton("Cancel", cancel, "quiet small");
  let now = "";
  let began = performance.now();
  return {
    element: h("div", { class: "progress" }, h("p", {}, text, amount), bar, button),
    say(other) {
      fill(text, other);
      fill(amount);
      bar.setAttribute("aria-label", other);
      bar.removeAttribute("value");
    },
    moved({ phase, done, whole }) {
      if (phase !== now) began = performance.now();
      now = phase;
      bar.max = Math.max(1, whole);
      bar.value = whole ? done : 1;
      bar.dataset.phase = phase;
      fill(amount, far(phase, done, whole, performance.now() - began));
    },
    settled() {
      button?.remove();
    },
  };
}

function far(phase, done, whole, ms) {
  const parts = [` ${PHASES[phase] ?? phase} ${whole ? Math.floor((100 * done) / whole) : 100} %`];
  if (COUNTED.includes(phase)) return parts[0];
  parts.push(`${bytes(done)} of ${bytes(whole)}`);
  const speed = done / (ms / 1000);
  if (ms > 500) parts.push(`${bytes(speed)}/s`);
  if (ms > TELL_MS && speed > 0) parts.push(`${duration((whole - done) / speed)} left`);
  return parts.join(", ");
}
