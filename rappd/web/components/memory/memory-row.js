/** One memory in the list. */

import { h } from "../../lib/dom.js";
import { onDay } from "../../lib/format.js";

/** The row of `memory`; `edit()` and `remove(event)` are its two actions. */
export function memoryRow(memory, { edit, remove }) {
  const start = memory.message.slice(0, 40);
  const button = (label, onclick) =>
    h("button", { type: "button", class: "quiet", onclick, "aria-label": `${label}: ${start}` }, label);
  return h(
    "li",
    { class: "card memory", "data-key": memory.key },
    h(
      "div",
      { class: "card-words" },
      h("p", { class: "memory-text" }, memory.message || "(empty)"),
      h(
        "p",
        { class: "soft" },
        [memory.theme, when(memory), ...memory.tags.map((tag) => `#${tag}`)].filter(Boolean).join(" · "),
      ),
    ),
    h("div", { class: "card-actions" }, button("Edit", edit), button("Delete", remove)),
  );
}

/** "today, 14:02" as far as the memory says it. */
function when({ date, time }) {
  const moment = new Date(`${date}T${time || "00:00:00"}`);
  if (Number.isNaN(moment.getTime())) return date;
  return [onDay(moment), time.slice(0, 5)].filter(Boolean).join(", ");
}
