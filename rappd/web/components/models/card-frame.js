/** Frame of a card for one way to get answers: title, state, a sentence, and what the card does. */

import { fill, h } from "../../lib/dom.js";
import { limitList } from "./model-limits.js";

const STATES = { used: ["good", "✓ in use"], ready: ["soft", "set up"] };

/**
 * A card. `mark(state)` shows "used", "ready" or, with "", nothing beside the title; `limits(models)` what models of this
 * server were found not to do.
 */
export function cardFrame(title, sentence, ...inside) {
  const badge = h("span", { class: "badge" });
  const known = h("div", {});
  return {
    element: h(
      "article",
      { class: "card server-card" },
      h("header", {}, h("h3", {}, title), badge),
      h("p", { class: "soft" }, sentence),
      known,
      inside,
    ),
    mark(state) {
      const [look, text] = STATES[state] ?? [];
      fill(badge, text && h("span", { class: `sign ${look}` }, text));
    },
    limits: (models = []) => fill(known, limitList(models)),
  };
}
