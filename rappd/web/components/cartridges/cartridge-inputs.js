/** Handing a program something: when it asks, or before it does. */

import { parse } from "../../lib/cartridges/json.js";
import { BadCartridge } from "../../lib/cartridges/problem.js";
import { count } from "../../lib/format.js";
import { fill, h } from "../../lib/dom.js";
import { attemptIn } from "../ui/problem.js";
import { announce } from "../../lib/live-region.js";

const KINDS = [
  ["words", "Words"],
  ["number", "A number"],
  ["json", "JSON"],
];

/** `draw()` shows what it waits for now; `focus()` goes where one answers. */
export function cartridgeInputs(cartridge) {
  const errorPlace = h("div", {});
  const input = h("input", { type: "text", id: "cartridge-answer", autocomplete: "off" });
  const kind = h(
    "select",
    { "aria-label": "What it is" },
    KINDS.map(([value, title]) => h("option", { value }, title)),
  );
  const label = h("label", { for: input.id });
  const waiting = h("p", { class: "soft" });
  const form = h(
    "form",
    { class: "cartridge-form" },
    label,
    h(
      "div",
      { class: "cartridge-answer" },
      input,
      kind,
      h("button", { type: "submit", class: "secondary" }, "Send"),
    ),
    waiting,
    errorPlace,
  );
  const title = h("summary", {});
  const element = h("details", { class: "fold cartridge-giving" }, title, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await attemptIn(errorPlace, async () => {
      const value = valueOf(input.value, kind.value);
      input.value = "";
      cartridge.give(value);
      if (!cartridge.underWay) announce("It is kept for when the program asks.");
    });
  });
  const draw = () => {
    const asks = cartridge.state === "waiting";
    element.classList.toggle("asks", asks);
    if (asks) element.open = true;
    fill(title, asks ? "Answer it" : "Input");
    fill(label, asks ? "Your answer" : "What it gets when it asks");
    const { length } = cartridge.pending;
    fill(waiting, length > 0 && `${count(length, "thing")} given that it has not taken yet.`);
  };
  draw();
  return { element, draw, focus: () => input.focus() };
}

function valueOf(text, kind) {
  if (kind === "words") return text;
  const wrong = () =>
    kind === "number"
      ? new BadCartridge(`"${text.slice(0, 40)}" is no number.`, "Write it like 42 or 3.5, or choose Words.")
      : new BadCartridge("That is not JSON.", 'Write it like [1, 2] or {"name": "Ada"}, or choose Words.');
  let found;
  try {
    found = parse(new TextEncoder().encode(`{"value": ${text}}`), "It");
  } catch (problem) {
    if (!(problem instanceof BadCartridge)) throw problem;
    throw wrong();
  }
  const value = found.get("value");
  const isNumber = typeof value === "bigint" || typeof value === "number";
  if (found.size !== 1 || (kind === "number" && !isNumber)) throw wrong();
  return value;
}
