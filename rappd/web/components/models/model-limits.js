/** Limits of models that were found, in words. */

import { h } from "../../lib/dom.js";

/** "Cannot use agents; cannot see pictures." */
export function limitsInWords(limits) {
  const text = limits.map(({ text }) => text).join("; ");
  return text && `${text[0].toUpperCase()}${text.slice(1)}.`;
}

/** The limits of the models of a server, as a list for its card. `models` are `{model, limits}`. */
export function limitList(models) {
  if (!models.length) return null;
  return h(
    "ul",
    { class: "model-limits soft" },
    models.map(({ model, limits }) => h("li", {}, h("strong", {}, model), `: ${limits.map(({ text }) => text).join("; ")}.`)),
  );
}
