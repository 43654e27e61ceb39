/** Saving a cartridge as a file that goes on elsewhere, and this machine's signature beside it. */

import { ask, saveAs } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h, withCode } from "../../lib/dom.js";
import { attemptIn } from "../ui/problem.js";
import { announce } from "../../lib/live-region.js";

/** `button` saves; `element` tells what was saved. `draw()` after each change. */
export function cartridgeSaving(cartridge) {
  const element = h("div", { class: "cartridge-saved" });
  const button = h("button", { type: "button", class: "secondary", onclick: () => save() }, "Save");
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
