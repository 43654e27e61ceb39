/** Voice in and voice out, where the browser has them. */

import { stored } from "../../lib/storage.js";

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

export const canListen = Boolean(Recognition) && isSecureContext; // elsewhere a browser has no microphone
export const canSpeak = "speechSynthesis" in globalThis;

const HEARD_NOTHING = new Set(["no-speech", "aborted"]);
const WHY = {
  "not-allowed": "The browser may not use the microphone. Allow it beside the address.",
  "service-not-allowed": "This browser has no speech service here. Type instead.",
  "audio-capture": "No microphone was found. Plug one in, or type.",
  network: "The browser's speech service doesn't answer. Type instead.",
};

/** Reads `text` aloud; what was being read stops. */
export function speak(text) {
  if (!canSpeak) return;
  speechSynthesis.cancel();
  const saying = new SpeechSynthesisUtterance(text);
  saying.lang = document.documentElement.lang;
  saying.onend = saying.onerror = () => dispatchEvent(new Event("speech"));
  saying.onstart = saying.onend;
  speechSynthesis.speak(saying);
}

/** True while text is read aloud. `window` gets `speech` events at changes. */
export const speaking = () => canSpeak && (speechSynthesis.speaking || speechSynthesis.pending);

/** Ends reading aloud. */
export function stopSpeaking() {
  if (canSpeak) speechSynthesis.cancel();
}

/**
 * Listens to one utterance. Calls `heard(text, final)` as words come and `ended(problem)` once, with a
 * sentence when it failed. Returns what stops it. Prefers recognition on this computer.
 */
export async function listen({ heard, ended }) {
  const recognition = new Recognition();
  recognition.lang = stored("speech-language", "") || navigator.language;
  recognition.interimResults = true;
  recognition.maxAlternatives = 1;
  if (await canStayHere(recognition.lang)) recognition.processLocally = true;
  let problem = "";
  recognition.onresult = (event) => {
    const results = [...event.results];
    heard(
      results.map((result) => result[0].transcript).join(""),
      results.every((result) => result.isFinal),
    );
  };
  recognition.onerror = (event) => {
    if (!HEARD_NOTHING.has(event.error))
      problem = WHY[event.error] ?? `Listening stopped: ${event.error}. Type instead.`;
  };
  recognition.onend = () => ended(problem);
  recognition.start();
  return () => recognition.stop();
}

async function canStayHere(language) {
  if (!Recognition.available) return false;
  try {
    return (await Recognition.available({ langs: [language], processLocally: true })) === "available";
  } catch {
    return false; // an older shape of the same function: recognition works all the same
  }
}
