// Speech through the browser's own means, where this origin may: answers read aloud, and a microphone for writing.

import { element } from "./element.js";
import { keep, kept } from "./storage.js";

const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;
const LONGEST = 4000;

/** A switch for the menu, and `hear(event)` for each answer that comes; null where the browser cannot speak. */
export function readAloud() {
  if (!window.speechSynthesis || !window.SpeechSynthesisUtterance) return null;
  let on = null; // until it is known what was chosen before
  const button = element("button", { type: "button", onclick: () => change(!on) });
  const draw = () => {
    button.textContent = on ? "Stop reading aloud" : "Read answers aloud";
    button.ariaPressed = String(Boolean(on));
  };
  const change = (wanted) => {
    on = wanted;
    if (!on) speechSynthesis.cancel();
    keep("aloud", on);
    draw();
  };
  const quiet = () => speechSynthesis.cancel();
  kept("aloud").then((before) => {
    on ??= before === true; // a click meanwhile is the latest
    draw();
  });
  addEventListener("pagehide", quiet);
  draw();
  return {
    button,
    quiet,
    hear(event) {
      if (on && event.kind === "twin_response" && !event.error && event.text)
        speechSynthesis.speak(new SpeechSynthesisUtterance(event.text.slice(0, LONGEST)));
    },
  };
}

/** A button that writes into `input` what is said; null where the origin is not secure, or the browser cannot. */
export function microphone(input, written) {
  if (!window.isSecureContext || !Recognition) return null;
  let listening = null;
  const button = element("button", { type: "button", className: "microphone", title: "The browser's maker may process what you say." });
  const draw = (words = listening ? "Stop dictating" : "Dictate") => {
    button.textContent = words;
    button.ariaPressed = String(Boolean(listening));
  };
  const stop = () => {
    const ended = listening;
    listening = null; // results that come later are not written: the text may be sent already
    ended?.abort();
    draw();
  };
  const start = () => {
    const before = input.value.trim();
    const now = Object.assign(new Recognition(), { lang: navigator.language, interimResults: true, continuous: true });
    listening = now;
    now.onresult = ({ results }) => {
      if (listening !== now) return;
      const said = [...results].map(([best]) => best.transcript.trim()).join(" ");
      input.value = before ? `${before} ${said}` : said;
      written();
    };
    now.onerror = ({ error }) => {
      if (listening === now) stop();
      if (error === "not-allowed") draw("No microphone");
    };
    now.onend = () => listening === now && stop();
    now.start();
    draw();
  };
  button.onclick = () => (listening ? stop() : start());
  draw();
  return { button, stop };
}
