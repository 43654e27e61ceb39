/** The position of a paused program: its next step, its stack and its variables. */

import { fill, h } from "../../lib/dom.js";

const SHOWN = 40;

/** `draw()` shows where it stands now. */
export function cartridgePosition(cartridge) {
  const next = h("p", { class: "cartridge-next" });
  const inside = h("div", {});
  const element = h("details", { class: "fold" }, h("summary", {}, "Position"), inside);
  const draw = () => {
    const stands = cartridge.state === "paused";
    next.hidden = element.hidden = !stands;
    if (!stands) return fill(inside);
    const found = cartridge.frame.inspect();
    fill(next, "Next: ", h("code", {}, found.next));
    fill(
      inside,
      found.waiting.length > 0 && listed("Waits for that", found.waiting),
      found.globals.length > 0 &&
        listed(
          "Knows",
          found.globals.map(([name, value]) => `${name} = ${value}`),
        ),
    );
  };
  return { element: h("div", { class: "cartridge-position" }, next, element), draw };
}

function listed(title, lines) {
  const more = lines.length - SHOWN;
  return [
    h("h3", {}, title),
    h(
      "ul",
      { class: "paths" },
      lines.slice(0, SHOWN).map((line) => h("li", {}, h("span", { class: "path" }, line))),
      more > 0 && h("li", { class: "soft" }, `and ${more} more`),
    ),
  ];
}
