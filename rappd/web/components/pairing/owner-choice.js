/** Choice of another machine's owner, without a default. */

import { fill, h } from "../../lib/dom.js";

const CHOICES = [
  ["mine", "Mine", "It may use every agent that you approved here, and read this machine for snapshots."],
  ["friend", "A friend's", "It may send you eggs; the rest only when you share it."],
];

let count = 0;

/** A group of two radio buttons. `value` is "mine", "friend" or ""; `missing()` tells that one is needed. */
export function ownerChoice(question) {
  const name = `whose-${++count}`;
  const errorPlace = h("p", { class: "field-trouble", id: `${name}-trouble`, role: "alert" });
  const inputs = CHOICES.map(([value]) =>
    h("input", { type: "radio", name, value, "aria-describedby": `${name}-${value}` }),
  );
  const legend = h("legend", {}, question);
  const element = h(
    "fieldset",
    { class: "whose" },
    legend,
    CHOICES.map(([value, title, meaning], at) =>
      h(
        "label",
        { class: "choice-line" },
        inputs[at],
        h("span", {}, h("span", {}, title), h("span", { class: "soft", id: `${name}-${value}` }, meaning)),
      ),
    ),
    errorPlace,
  );
  for (const input of inputs) input.addEventListener("change", () => fill(errorPlace));
  return {
    element,
    get value() {
      return inputs.find(({ checked }) => checked)?.value ?? "";
    },
    ask: (now) => fill(legend, now),
    missing() {
      fill(errorPlace, "Choose one of the two first.");
      inputs[0].focus();
    },
  };
}
