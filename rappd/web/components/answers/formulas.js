/** Formulas of an answer, drawn as MathML. Fetched with its library when the first such answer is shown. */

import DOMPurify from "../../vendor/dompurify/purify.js";
import { h } from "../../lib/dom.js";

const BLOCK = "x-formula-block";
const MOST_CHARACTERS = 5_000;
const OPTIONS = { output: "mathml", throwOnError: true, trust: false, strict: "ignore", maxSize: 12, maxExpand: 300 };
const RULES = {
  USE_PROFILES: { mathMl: true },
  ADD_TAGS: ["semantics"],
  FORBID_CONTENTS: ["annotation", "annotation-xml"],
  FORBID_ATTR: ["class", "style", "id", "href", "xlink:href", "tabindex", "mathcolor", "mathbackground"],
  RETURN_DOM_FRAGMENT: true,
};

/** Draws `formulas` ({place, mark}) in place, and says `grew` at each. What is no formula stays as it was written. */
export async function drawFormulas(formulas) {
  const wanted = formulas.filter(({ place }) => place.textContent.length <= MOST_CHARACTERS);
  await import("../../vendor/katex/katex.js"); // no module: it leaves its name behind
  for (const { place, mark } of wanted) draw(place, mark === BLOCK);
}

function draw(place, displayMode) {
  const tex = place.textContent;
  place.className = displayMode ? "formula-block" : "formula";
  let text;
  try {
    text = globalThis.katex.renderToString(tex, { ...OPTIONS, displayMode });
  } catch (found) {
    if (!(found instanceof globalThis.katex.ParseError)) throw found;
    place.replaceWith(h("code", { title: "This formula could not be read." }, tex));
    return;
  }
  place.replaceChildren(DOMPurify.sanitize(text, RULES));
  if (displayMode) place.tabIndex = 0;
  place.dispatchEvent(new Event("grew", { bubbles: true }));
}
