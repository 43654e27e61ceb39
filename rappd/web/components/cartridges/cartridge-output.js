/** The output of a program, live; screen readers get new output whenever it pauses. */

import { fill, h } from "../../lib/dom.js";

const SHOWN = 60_000;
const READ_OUT = 600;
const EMPTY = new Set(["", "nil", "()"]);

/** `draw()` shows what there is now. */
export function cartridgeOutput(cartridge) {
  const text = document.createTextNode("");
  const log = h("pre", { class: "log", tabindex: 0, role: "region", "aria-label": "What it wrote" }, text);
  const cut = h("p", { class: "soft", hidden: true }, "Only the end of it is shown; Save keeps all of it.");
  const result = h("p", { class: "cartridge-result" });
  const spoken = h("div", { class: "visually-hidden", "aria-live": "polite" });
  const element = h("section", { class: "group" }, h("h2", {}, "What it wrote"), cut, log, result, spoken);
  let whole = "";
  let heard = "";

  const draw = () => {
    const { output } = cartridge;
    if (output !== whole) {
      const follows = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      if (output.length <= SHOWN && output.startsWith(whole)) text.appendData(output.slice(whole.length));
      else text.data = output.slice(-SHOWN);
      cut.hidden = output.length <= SHOWN;
      whole = output;
      if (follows) log.scrollTop = log.scrollHeight;
    }
    log.classList.toggle("nothing", !output);
    if (cartridge.state === "running") return;
    const told = cartridge.state === "done" && !EMPTY.has(cartridge.result);
    fill(result, told && ["It came to ", h("code", {}, short(cartridge.result))]);
    speak(output);
  };
  const speak = (output) => {
    const fresh = output.startsWith(heard) ? output.slice(heard.length) : output;
    heard = output;
    if (fresh) spoken.textContent = fresh.slice(-READ_OUT);
  };
  draw();
  return { element, draw };
}

const short = (text) => (text.length > READ_OUT ? `${text.slice(0, READ_OUT)}…` : text);
