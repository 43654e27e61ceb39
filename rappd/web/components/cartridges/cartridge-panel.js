/** One cartridge that is open: what it is, its buttons, what it writes and asks for, its program. */

import { ask, saveAs } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon, withCode } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { announce } from "../../lib/live-region.js";
import { attemptIn } from "../ui/problem.js";
import { cartridgeHead, cartridgeText } from "./cartridge-details.js";
import { cartridgeInputs } from "./cartridge-inputs.js";
import { cartridgeOutput } from "./cartridge-output.js";
import { advice, FUEL, standing } from "./cartridge-words.js";

/** Fills `place` with `cartridge`; `leave()` goes back to the others. `close()` when done. */
export function cartridgePanel(place, cartridge, leave) {
  const head = cartridgeHead(cartridge);
  const output = cartridgeOutput(cartridge);
  const giving = cartridgeInputs(cartridge);
  const where = cartridgePosition(cartridge);
  const saving = cartridgeSaving(cartridge);
  const fuel = fuelMeter(cartridge);
  const main = h("button", { type: "button", class: "primary" });
  const step = actionButton("Step", () => cartridge.step());
  const over = actionButton("Start over", () => startOver(), "quiet");
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
        actionButton([icon("chevron", "icon back"), "All cartridges"], leave, "quiet"),
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

const SHOWN = 40;

/** `draw()` shows where it stands now. */
function cartridgePosition(cartridge) {
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

/** `button` saves; `element` tells what was saved. `draw()` after each change. */
function cartridgeSaving(cartridge) {
  const element = h("div", { class: "cartridge-saved" });
  const button = actionButton("Save", () => save());
  let told = "";

  const save = () =>
    attemptIn(element, async () => {
      const { name, text } = cartridge.saved();
      saveAs(text, name);
      const errorPlace = h("div", {});
      const command = `rappd cartridge ${cartridge.underWay ? "resume" : "run"}`;
      const sign = h("button", { type: "button", class: "quiet small" }, "Save its signature");
      sign.addEventListener("click", () => attemptIn(errorPlace, () => signature(name, text)));
      fill(
        element,
        h("p", { class: "soft" }, withCode(`Saved as ${name}. In a terminal: \`${command} ${name}\``)),
        daemon.operator && sign,
        errorPlace,
      );
      told = cartridge.state;
      announce(`Saved as ${name}.`);
    });
  const draw = () => {
    button.disabled = cartridge.state === "running";
    if (told && told !== cartridge.state) {
      fill(element);
      told = "";
    }
  };
  return { button, element, draw };
}

/** The daemon signs; the page has no key. */
async function signature(name, text) {
  const path = `/cartridges/signature?name=${encodeURIComponent(name)}`;
  const headers = { "Content-Type": "application/octet-stream" };
  const made = await ask(path, { method: "POST", form: text, headers });
  saveAs(made.signature, made.file);
}
