/** One cartridge that is open: what it is, its buttons, what it writes and asks for, its program. */

import { count } from "../../lib/format.js";
import { cartridgeHead, cartridgeText } from "./cartridge-details.js";
import { cartridgeInputs } from "./cartridge-inputs.js";
import { cartridgeOutput } from "./cartridge-output.js";
import { cartridgeSaving } from "./cartridge-saving.js";
import { cartridgePosition } from "./cartridge-position.js";
import { advice, standing } from "./cartridge-words.js";
import { FUEL } from "./cartridge-state.js";
import { fill, h, icon, withCode } from "../../lib/dom.js";

/** Fills `place` with `cartridge`; `leave()` goes back to the others. `close()` when done. */
export function cartridgePanel(place, cartridge, leave) {
  const head = cartridgeHead(cartridge);
  const output = cartridgeOutput(cartridge);
  const giving = cartridgeInputs(cartridge);
  const where = cartridgePosition(cartridge);
  const saving = cartridgeSaving(cartridge);
  const fuel = fuelMeter(cartridge);
  const main = h("button", { type: "button", class: "primary" });
  const step = h("button", { type: "button", class: "secondary", onclick: () => cartridge.step() }, "Step");
  const over = h("button", { type: "button", class: "quiet", onclick: () => startOver() }, "Start over");
  const status = h("p", { class: "cartridge-status", role: "status" });
  const todo = h("p", { class: "soft" });
  let state = "";

  main.addEventListener("click", (event) => {
    if (event.detail > 1) return; // the second click of two was meant for the first one's button
    if (cartridge.state === "running") cartridge.pause();
    else cartridge.run();
  });
  const startOver = () => {
    cartridge.startOver();
    main.focus();
  };
  const draw = () => {
    const had = document.activeElement;
    fill(main, MAIN[cartridge.state] ?? "Run");
    const asksNow = cartridge.state === "waiting" && state !== "waiting";
    main.disabled = cartridge.state === "waiting";
    step.disabled = cartridge.state === "running" || cartridge.state === "waiting";
    over.hidden = cartridge.state === "ready";
    const failed = cartridge.state === "failed";
    const sign = SIGNS[cartridge.state];
    fill(
      status,
      sign && h("span", { class: `sign ${sign[0]}` }, `${sign[1]} `),
      withCode(standing(cartridge)),
    );
    fill(todo, failed && withCode(advice(cartridge)));
    state = cartridge.state;
    for (const part of [head, output, giving, where, saving, fuel]) part.draw();
    if (asksNow && (had === main || had === step || had === document.body)) giving.focus();
  };
  let asked = 0;
  const move = () => {
    asked ||= requestAnimationFrame(() => {
      asked = 0;
      if (cartridge.state !== "running") return;
      fuel.draw();
      output.draw();
    });
  };
  cartridge.addEventListener("change", draw);
  cartridge.addEventListener("moved", move);
  fill(
    place,
    h(
      "div",
      { class: "cartridge" },
      h(
        "p",
        { class: "back-link" },
        h(
          "button",
          { type: "button", class: "quiet", onclick: leave },
          icon("chevron", "icon back"),
          "All cartridges",
        ),
      ),
      head.element,
      h(
        "section",
        { class: "cartridge-run", "aria-label": "Running it" },
        h("div", { class: "cartridge-buttons" }, main, step, saving.button, over),
        status,
        todo,
        saving.element,
        fuel.element,
        giving.element,
        where.element,
      ),
      output.element,
      cartridgeText(cartridge),
    ),
  );
  draw();
  return {
    close() {
      cancelAnimationFrame(asked);
      cartridge.removeEventListener("change", draw);
      cartridge.removeEventListener("moved", move);
    },
  };
}

const MAIN = { running: "Pause and keep", paused: "Resume", waiting: "Resume", done: "Run again" };
const SIGNS = { done: ["good", "✓"], failed: ["bad", "✗"], waiting: ["warn", "!"] };

/** A progress bar of the steps that were used and the step limit. */
function fuelMeter(cartridge) {
  const bar = h("progress", { "aria-label": "Steps used" });
  const text = h("span", { class: "soft" });
  const choice = h(
    "select",
    { "aria-label": "How far it may go" },
    FUEL.map((steps) => h("option", { value: steps }, `up to ${count(steps, "step")}`)),
  );
  choice.addEventListener("change", () => {
    cartridge.fuel = Number(choice.value);
    draw();
  });
  const draw = () => {
    const whole = cartridge.underWay ? cartridge.frame.fuel : cartridge.fuel;
    const used = Math.min(cartridge.steps, whole);
    bar.max = whole;
    bar.value = used;
    fill(text, `Step limit: ${count(used, "step")} of ${count(whole, "step").replace(/ steps?$/, "")} used`);
    choice.value = String(cartridge.fuel);
    choice.hidden = cartridge.underWay;
  };
  return { element: h("div", { class: "progress fuel" }, h("p", {}, text), bar, choice), draw };
}
