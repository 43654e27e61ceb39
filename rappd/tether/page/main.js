// The phone's page: one sentence and one main button at a time, then the conversation.

import { DiffersError, ExpiredError, pair, registered, RemovedError, scanned, typed } from "./connect.js";
import { element } from "./element.js";
import { announce } from "./web/lib/live-region.js";
import { whyNotSecure } from "./not-secure.js";
import { phoneName } from "./phone-name.js";
import { Session } from "./session.js";
import { forgetAll, forgets, isBlocked } from "./storage.js";
import { askUnprotected, StoppedError } from "./unprotected.js";

/** Ways back to this page without another code, by the browser. */
const STEPS = [
  [/iPhone|iPad/, "Tap Share, then “Add to Home Screen”."],
  [/Android/, "Open the browser's menu ⋮, then “Add to Home screen”."],
  [/./, "Save this page as a bookmark."],
];

const screen = document.getElementById("main");
const SLOW_MS = 6000;

/** Shows a screen of its own, and says its sentence and the lines below it; a number is read digit by digit. */
function show(sentence, ...more) {
  screen.replaceChildren(element("section", { className: "center" }, element("h1", { className: "sentence" }, sentence), ...more.filter((one) => one !== "")));
  const lines = more.filter((one) => one.tagName === "P").map((one) => one.ariaLabel ?? one.textContent);
  announce([sentence, ...lines].filter(Boolean).join(" "), "screen");
}

function button(words, onclick, className = "main") {
  return element("button", { type: "button", className, onclick }, words);
}

function checking(machine) {
  const hint = element("p", { className: "hint" });
  show(`Finding ${machine || "your computer"}…`, hint,
    element("p", { className: "hint" }, "If this phone asks about devices on your network, allow it: that is how it reaches the computer."));
  const timer = setTimeout(() => {
    hint.textContent = "Still looking. Same Wi-Fi as the computer?";
    announce(hint.textContent, "screen");
  }, SLOW_MS);
  return () => clearTimeout(timer);
}

function compare(digits, machine) {
  fetchTalk();
  const number = element("p", { className: "digits", role: "img", ariaLabel: digits.split("").join(" ") }, digits);
  return new Promise((resolve) => {
    show("Does the computer show this number?", number,
      element("div", { className: "buttons" },
        button("Different", () => resolve(false), ""), // of equal weight: neither is suggested
        button("Same number", () => {
          show(`Now say yes on ${machine || "the computer"}.`, number); // it is still compared there
          resolve(true);
        }, "")));
  });
}

/** Asks before the WebSocket on plain http, then shows again what was there. */
function talkAnyway() {
  const before = [...screen.childNodes];
  return new Promise((resolve) => {
    const answer = (anyway) => {
      screen.replaceChildren(...before);
      resolve(anyway);
    };
    show("This Wi-Fi blocks the private line. Others on it could read what is said.",
      element("p", { className: "hint" }, "Nothing was shared so far."),
      element("div", { className: "buttons" },
        button("Stop", () => answer(false), ""), button("Talk anyway", () => answer(true), "")));
  });
}

function stopped(again) {
  show("Stopped. Nothing was shared.", element("p", { className: "hint" }, "Another Wi-Fi may have a private line."),
    button("Try again", again));
}

function replaced(machine, here) {
  show(`${machine} is open in another tab of this phone.`,
    element("p", { className: "hint" }, "Go on there, or go on here. What you wrote is kept."),
    button("Go on here", here));
}

function askForCode(problem = "") {
  const input = element("input", { name: "code", autocomplete: "off", autocapitalize: "characters", spellcheck: false, ariaLabel: "Code" });
  const form = element("form", { className: "code" }, input, element("button", { type: "submit", className: "main" }, "Continue"));
  form.onsubmit = (event) => {
    event.preventDefault();
    if (input.value.trim()) join(typed(input.value));
  };
  show("Point your camera at the QR code on the computer.",
    element("p", { className: "hint" }, "Or type the code that stands below it:"), form,
    element("p", { className: "notice" }, problem), whyNotSecure());
}

async function join(invitation) {
  const stop = checking();
  try {
    const frames = await pair(invitation, phoneName(), (digits, machine) => {
      stop();
      return compare(digits, machine);
    });
    const device = await registered();
    const warning = isBlocked() ? forgets() : "";
    show("You're in.", warning, button("Start talking", () => talk(device, frames)), homeScreen(device.machine), frames.secure ? whyNotSecure() : "");
    screen.querySelector("button").focus();
  } catch (error) {
    stop();
    if (error instanceof StoppedError) stopped(() => join(invitation));
    else failed(error);
  }
}

function failed(error) {
  if (error instanceof DiffersError) {
    show("Stopped: the numbers differ. Nothing was shared.",
      element("p", { className: "hint" }, "Try a new QR code; if it happens again, change Wi-Fi."), button("Try again", () => askForCode()));
  } else if (error instanceof ExpiredError) {
    show("That QR code has expired. Ask for a new one.", button("Type a code", () => askForCode()));
  } else unreachable();
}

/** Forgets all, because the next person who joins with this phone is somebody new; a fresh page takes the code. */
async function removed() {
  await forgetAll();
  show("This phone was removed. To come back, ask for a new QR code.", button("Type a code", loadAnew));
}

/** Loads the page anew where the computer has it: it listens for phones while one is registered, or a code is shown. */
async function loadAnew() {
  try {
    await fetch(location.pathname, { cache: "no-store" });
  } catch {
    unreachable();
    return;
  }
  location.reload();
}

function unreachable() {
  show("The computer cannot be reached.", element("p", { className: "hint" }, "Same Wi-Fi as the computer? Does it show a QR code?"),
    button("Try again", loadAnew));
}

/** The conversation; its modules are there by then, where the first screen stood for a moment. */
async function talk(device, frames) {
  const { talk: view } = await import("./talk.js");
  let shown = null;
  const again = () => {
    screen.replaceChildren(shown);
    session.again();
  };
  const session = new Session(device, () => {
    if (["removed", "stopped", "replaced"].includes(session.state)) shown?.rest();
    if (session.state === "removed") removed();
    else if (session.state === "stopped") stopped(again);
    else if (session.state === "replaced") replaced(device.machine, again);
    else shown?.update();
  });
  shown = view(session, device.machine, {
    onLeave: async () => {
      session.leave();
      shown.rest();
      await forgetAll();
      show("You left.", element("p", { className: "hint" }, "To come back, ask for a new QR code."));
    },
  });
  screen.replaceChildren(shown);
  shown.start();
  session.run(frames);
}

/** Fetches the modules of the conversation, which is not shown yet. */
function fetchTalk() {
  const later = document.getElementById("then");
  if (later) document.head.append(later.content);
  later?.remove();
}

async function start() {
  const invitation = scanned();
  const device = await registered();
  if (!invitation) requestAnimationFrame(() => setTimeout(fetchTalk)); // else the offer goes first, and people compare
  if (invitation) await join(invitation);
  else if (device) talk(device, null);
  else askForCode();
}

/** A closed explanation: nothing has to be done. */
function homeScreen(machine) {
  const [, step] = STEPS.find(([agent]) => agent.test(navigator.userAgent));
  return element("details", { className: "home-screen" },
    element("summary", {}, "Keep it on the home screen"),
    element("p", { className: "hint" }, `${step} The icon opens this page, which finds ${machine || "the computer"} again on the same Wi-Fi. No new QR code is needed.`));
}

askUnprotected(talkAnyway);
addEventListener("hashchange", () => location.hash.startsWith("#v=") && location.reload()); // a new link, opened where the page is shown already
start().catch((error) => {
  if (error instanceof RemovedError) removed();
  else failed(error);
});
