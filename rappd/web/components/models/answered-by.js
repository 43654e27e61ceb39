/** Who answered a turn, how long it took, and how many tokens: one soft line below the answer. */

import { h } from "../../lib/dom.js";
import { count, duration } from "../../lib/format.js";

const OFFLINE = "offline brain";
const HERE = "local model"; // a server on this computer that does not say what it is
const NUMBER = new Intl.NumberFormat("en-GB");

/** The line, or null where a turn of an older version says nothing of it. */
export function answeredBy(turn) {
  const words = wordsOf(turn);
  return words && h("p", { class: "soft answered-by" }, words);
}

function wordsOf({ model, provider, seconds, tokensIn, tokensOut }) {
  if (!model && !provider) return "";
  const offline = OFFLINE === (provider || model);
  const by = [model, provider === HERE ? "on this computer" : provider];
  return [
    offline ? "without a model" : [...new Set(by.filter(Boolean))].join(", "),
    seconds !== null && seconds !== undefined && duration(seconds),
    Boolean(tokensIn || tokensOut) && `${count(tokensIn ?? 0, "token")} in, ${NUMBER.format(tokensOut ?? 0)} out`,
  ]
    .filter(Boolean)
    .join(", ");
}
