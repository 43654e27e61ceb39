/** Frame of a card for one way to get answers: title, state, a sentence, and what the card does. */

import { fill, h } from "../../lib/dom.js";

const STATES = { used: ["good", "✓ in use"], ready: ["soft", "set up"] };

/** A card. `mark(state)` shows "used", "ready" or, with "", nothing beside the title. */
export function cardFrame(title, sentence, ...inside) {
  const badge = h("span", { class: "badge" });
  return {
    element: h(
      "article",
      { class: "card server-card" },
      h("header", {}, h("h3", {}, title), badge),
      h("p", { class: "soft" }, sentence),
      inside,
    ),
    mark(state) {
      const [look, text] = STATES[state] ?? [];
      fill(badge, text && h("span", { class: `sign ${look}` }, text));
    },
  };
}
