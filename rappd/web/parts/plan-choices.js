/** What of yours an egg may replace. */

import { count } from "./amounts.js";
import { h } from "./dom.js";
import { differing } from "./plan-rows.js";

const LABELS = { env: ".env", slots: "senses" };

/**
 * `chosen` is a set of what shall be replaced; what is chosen changes it, and `again()` asks for the plan
 * anew. Null when nothing of yours differs. When there is no new plan, the choice is taken back.
 */
export function overwriting(plan, chosen, again) {
  const offered = new Map([...differing(plan), ...[...chosen].map((name) => [name, 0])]);
  if (!offered.size) return null;
  return h(
    "fieldset",
    { class: "choices" },
    h("legend", {}, "Replace yours with the egg's"),
    [...offered].map(([name, files]) => {
      const id = `overwrite-${name}`;
      const box = h("input", { type: "checkbox", id });
      box.checked = chosen.has(name);
      box.addEventListener("change", async () => {
        const was = !box.checked;
        if (box.checked) chosen.add(name);
        else chosen.delete(name);
        if (await again()) return;
        if (was) chosen.add(name);
        else chosen.delete(name);
        box.checked = was;
      });
      return h(
        "label",
        { class: "choice-line", for: id },
        box,
        h(
          "span",
          {},
          LABELS[name] ?? name,
          files > 1 && h("span", { class: "soft" }, ` ${count(files, "file")}`),
        ),
      );
    }),
  );
}
