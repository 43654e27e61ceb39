/** Progress of an operation: amount, rate, and after three seconds the time left. */

import { bytes, duration } from "../../lib/format.js";
import { fill, h } from "../../lib/dom.js";

const TELL_MS = 3000;

/**
 * A line that says `words` and, where one can cancel, how. `moved(done, whole)` in bytes; without `whole`
 * nobody knows how far it is. `say(words)` changes the words.
 */
export function progressLine(words, { cancel = null } = {}) {
  const bar = h("progress", { "aria-label": words });
  const text = h("span", {}, words);
  const amount = h("span", { class: "soft" });
  const began = performance.now();
  return {
    element: h(
      "div",
      { class: "progress" },
      h("p", {}, text, amount),
      bar,
      cancel && h("button", { type: "button", class: "quiet small", onclick: cancel }, "Cancel"),
    ),
    say(now) {
      fill(text, now);
      fill(amount);
      bar.setAttribute("aria-label", now);
      bar.removeAttribute("value");
    },
    moved(done, whole) {
      bar.max = whole;
      bar.value = done;
      fill(amount, far(done, whole, performance.now() - began));
    },
  };
}

function far(done, whole, ms) {
  const parts = [` ${bytes(done)} of ${bytes(whole)}`];
  const speed = done / (ms / 1000);
  if (ms > 500) parts.push(`${bytes(speed)}/s`);
  if (ms > TELL_MS && speed > 0) parts.push(`${duration((whole - done) / speed)} left`);
  return parts.join(", ");
}
