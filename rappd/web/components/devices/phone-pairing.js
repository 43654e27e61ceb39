/** Dialog that lets a phone join: the QR code, the digits to compare, the result. */

import { actionButton, fill, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { countdown } from "../pairing/pairing-countdown.js";
import { openDialog } from "../ui/dialog.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";
import { openRenameDevice } from "./device-dialogs.js";
import { devices, isLive } from "./devices-state.js";
import { nameOf, named, rights, whose } from "./device-words.js";

const LOOK_MS = 1000;
const NOBODY_MS = 20_000;
const CALM_MS = 600; // a click that was meant for what stood here before is no answer
const TITLE = "Add a phone";
const POINT = "Point the phone's camera here. The phone must be on the same Wi-Fi.";

/** Shows a new QR code. Resolves when it is shown; raises `Problem`. */
export async function addPhone() {
  devices.took(await operations.devices.openWindow());
  openPhonePairing({ begun: true });
}

/** Takes the code back that is shown now; a phone that waits is told that it expired. */
export async function takeBack() {
  devices.took(await operations.devices.closeWindow());
  toast("Stopped; no phone joined.");
}

/**
 * Shows the pairing that goes on. Closed before its end, one that was `begun` by this dialog is taken back;
 * another one (of the command line, or of before a reload) goes on.
 */
export function openPhonePairing({ begun = false } = {}) {
  const body = h("div", { class: "pairing" });
  const spoken = h("p", { class: "visually-hidden", "aria-live": "polite", "aria-atomic": "true" });
  const errorPlace = h("div", {});
  const hint = h("p", { class: "soft", role: "status" });
  const clock = countdown(speak);
  let shown = { code: "", at: 0 }; // the code that stands here, and since when
  let drawn = "";
  const dialog = openDialog({
    title: TITLE,
    build: () => h("div", { class: "dialog-body" }, clock.element, body, hint, errorPlace, spoken),
    closed: () => {
      clearInterval(looking);
      devices.removeEventListener("change", draw);
      clock.close();
      if (begun && isLive(devices.pairing)) orShowFailure(takeBack);
    },
  });
  dialog.classList.add("pairing-dialog");
  const heading = dialog.querySelector("h2");
  const close = () => dialog.close();
  const views = { open: code, compare, waiting, paired, differs };
  const looking = setInterval(() => (devices.touch(), tick()), LOOK_MS);
  devices.addEventListener("change", draw);
  draw();

  function speak(text) {
    spoken.textContent = "";
    setTimeout(() => (spoken.textContent = text), 80);
  }

  function draw() {
    const now = devices.pairing;
    tick();
    const text = JSON.stringify([now.state, now.id, now.digits, now.name]);
    if (text === drawn) return;
    const held = body.contains(document.activeElement);
    drawn = text;
    dialog.classList.toggle("wide", now.state === "open");
    fill(errorPlace);
    fill(body, (views[now.state] ?? expired)(now));
    if (held && !body.contains(document.activeElement)) heading.focus();
  }

  async function stop() {
    if (await attemptIn(errorPlace, takeBack)) close();
  }

  /** The part that changes by the second: the time left, and the hint when nobody comes. */
  function tick() {
    const now = devices.pairing;
    clock.set(isLive(now) ? now.remaining : 0);
    if (now.code !== shown.code) shown = { code: now.code, at: performance.now() };
    const nobody = now.state === "open" && !now.visited && performance.now() - shown.at > NOBODY_MS;
    const text = nobody
      ? `Nobody came yet. Is the phone on this Wi-Fi (not mobile data, not a guest network)? Does a firewall block port ${now.port}?`
      : now.state === "open" && now.visited
        ? "A phone opened the page."
        : "";
    if (hint.textContent !== text) fill(hint, text);
  }

  function code(now) {
    const [link, ...others] = now.links;
    const picture = h("img", { class: "qr-code", alt: "QR code of the link below", width: 264, height: 264 });
    const instead = h("div", { hidden: true });
    drawCode(picture, instead);
    speak(`${POINT} Or open ${now.short_links[0]} and type ${[...now.code].join(" ")}.`);
    const words = [
      h("p", {}, POINT),
      h("p", { class: "soft" }, "If it asks about devices on the network, allow it: that is how it reaches this computer."),
      now.port_taken > 0 &&
        h("p", { class: "soft" }, `Port ${now.port_taken} is taken; phones use ${now.port}.`),
      h("p", {}, "Camera does not help? Open ", h("code", {}, now.short_links[0]), " and type"),
      h("p", { class: "shown-code" }, now.code),
      now.certificate && [
        h(
          "p",
          {},
          "The phone's browser warns that it does not know this computer: nobody else vouches for its certificate. ",
          "Go on there only if the certificate's SHA-256 fingerprint is:",
        ),
        h("p", {}, h("code", {}, now.certificate)),
      ],
      h(
        "details",
        { class: "fold" },
        h("summary", {}, "The link as text"),
        h(
          "ul",
          { class: "links" },
          [link, ...others].map((one) => h("li", {}, h("code", {}, one))),
        ),
      ),
    ];
    return [
      h("div", { class: "qr-parts" }, picture, instead, h("div", { class: "pairing" }, words)),
      buttons(button("Cancel the code", "secondary", stop)),
    ];
  }

  function compare(now) {
    let told = false; // the buttons stay enabled: one that is disabled loses the keyboard
    const say = (same, kind) => async () => {
      if (told) return;
      told = true;
      told = await attemptIn(errorPlace, async () =>
        devices.took(await operations.devices.answer({ id: now.id, same, kind })),
      );
    };
    const verdicts = [
      button("Same, mine", "secondary", say(true, "mine")),
      button("Same, a guest's", "secondary", say(true, "guest")),
      button("Different", "secondary", say(false, "guest")),
    ];
    for (const one of verdicts) one.disabled = true;
    setTimeout(() => verdicts.forEach((one) => (one.disabled = false)), CALM_MS);
    speak(`${nameOf(now)} is here. Does the phone show ${now.digits.replace(/\D/g, "").split("").join(" ")}?`);
    return [
      h("p", {}, named(now), " is here. Does the phone show this number?"),
      digits(now),
      h(
        "div",
        { class: "verdicts three", role: "group", "aria-label": "Are the numbers the same, and whose phone is it?" },
        verdicts,
      ),
      h("p", { class: "soft" }, "Yours sees your conversations and memory. A guest's has its own, and talks only."),
    ];
  }

  function waiting(now) {
    speak(`Now tap “Same number” on ${nameOf(now)}.`);
    return [
      digits(now),
      h("p", { class: "waiting" }, "Now tap “Same number” on ", named(now), "."),
      buttons(button("Stop", "secondary", stop)),
    ];
  }

  function paired({ device }) {
    speak(`${nameOf(device)} joined.`);
    const rename = () => {
      close();
      openRenameDevice(devices.device(device.id) ?? device);
    };
    return [
      outcome("good", "✓", [named(device), " joined."]),
      h("p", { class: "soft" }, `${whose(device)} It ${rights(device)}. That can be changed on this page.`),
      buttons(button("Rename", "secondary", rename), button("Close", "primary", close)),
    ];
  }

  function differs() {
    return ended(
      "Stopped: the numbers differ. Nothing was shared.",
      "Try a new QR code; if it happens again, change the Wi-Fi.",
    );
  }

  function expired(now) {
    return now.state === "expired"
      ? ended("The QR code has expired.", "No phone joined.")
      : ended("The code was cancelled.", "No phone joined.");
  }

  function ended(text, more) {
    speak(`${text} ${more}`);
    const again = () =>
      attemptIn(errorPlace, async () => {
        const pairing = await operations.devices.openWindow();
        begun = true;
        devices.took(pairing);
      });
    return [
      outcome("bad", "✗", text),
      h("p", { class: "soft" }, more),
      buttons(button("New QR code", "secondary", again), button("Close", "primary", close)),
    ];
  }
  return dialog;
}

/** Draws the code as an image: its markup comes from the daemon, and an image runs nothing. */
async function drawCode(picture, instead) {
  try {
    const { svg } = await operations.devices.qr();
    picture.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  } catch (found) {
    if (found.code === undefined) throw found;
    picture.hidden = true;
    fill(instead, problemView(found)).hidden = false;
  }
}

const digits = (now) =>
  h(
    "p",
    { class: "six-digits" },
    h("span", { "aria-hidden": "true" }, now.digits),
    h("span", { class: "visually-hidden" }, now.digits.replace(/\D/g, "").split("").join(" ")),
  );

const outcome = (kind, mark, words) =>
  h("p", { class: "outcome" }, h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, `${mark} `), words);

const button = (text, kind, onclick) => actionButton(text, onclick, kind);
const buttons = (...some) => h("div", { class: "dialog-actions" }, some);
