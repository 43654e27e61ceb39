/** Countdown of a pairing: always visible, announced at 60, 30 and 10 seconds. */

import { h } from "../../lib/dom.js";
import { minutes } from "../machines/machine-words.js";

const SPOKEN = [60, 30, 10];

/** `set(seconds)` is what the daemon said last; `speak(text)` is for screen readers. `close()` when done. */
export function countdown(speak) {
  const element = h("p", { class: "countdown soft", role: "timer", "aria-live": "off" });
  let end = 0;
  let before = Infinity;
  const draw = () => {
    const left = Math.max(0, Math.round((end - performance.now()) / 1000));
    element.textContent = end ? `Closes in ${minutes(left)}` : "";
    const passed = SPOKEN.find((mark) => left <= mark && before > mark && left > mark - 5);
    if (end && passed && before !== Infinity) speak(`${passed} seconds left.`);
    before = left;
  };
  const timer = setInterval(draw, 500);
  return {
    element,
    set(seconds) {
      const now = seconds > 0 ? performance.now() + seconds * 1000 : 0;
      if (now && end && Math.abs(now - end) < 1500) return; // the same end, rounded otherwise
      end = now;
      before = Infinity;
      draw();
    },
    close: () => clearInterval(timer),
  };
}
