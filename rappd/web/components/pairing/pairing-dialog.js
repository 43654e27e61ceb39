/** Pairing dialog: compares four words, asks for the machine's owner, and shows the result. */

import { Problem } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, withCode } from "../../lib/dom.js";
import { pairings } from "../../lib/operations.js";
import { orShowFailure } from "../agents/failed-files.js";
import { trustPeer } from "../eggs/signers.js";
import { hostOf, isLive, named, nameOf, pageOf, typed } from "../machines/machine-words.js";
import { machines } from "../machines/machines-state.js";
import { openDialog } from "../ui/dialog.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { ownerChoice } from "./owner-choice.js";
import { countdown } from "./pairing-countdown.js";

/**
 * Shows a pairing that began: `row` is the daemon's. Closed before its end, one that was begun here stops;
 * one that another machine began waits on in the list.
 */
export function openPairing(row) {
  const body = h("div", { class: "pairing" });
  const spoken = h("p", { class: "visually-hidden", "aria-live": "polite", "aria-atomic": "true" });
  const errorPlace = h("div", {});
  const clock = countdown(speak);
  const whose = ownerChoice("");
  let drawn = "";
  const pairing = followPairing(row, draw);
  const dialog = openDialog({
    title: "",
    build: () => h("div", { class: "dialog-body" }, clock.element, body, errorPlace, spoken),
    closed: () => {
      pairing.close();
      clock.close();
      machines.touch();
      if (isLive(pairing.row) && (pairing.row.role === "asks" || pairing.row.code)) orShowFailure(stopped);
    },
  });
  dialog.classList.add("pairing-dialog");
  const heading = dialog.querySelector("h2");
  const close = () => dialog.close();
  const views = {
    asking: (now) => (now.code && now.role === "answers" ? showCode(now) : asking(now)),
    words: (now) => [
      h(
        "p",
        {},
        now.role === "answers" && [named(now), ` (${hostOf(now)}) wants to pair. `],
        "Compare these four words with the ones on ",
        named(now),
        ".",
      ),
      fourWords(now),
      questions(now),
    ],
    waiting: (now) => [
      now.words.length > 0 && fourWords(now, true),
      h("p", { class: "waiting" }, "Now say yes on ", named(now), "."),
      buttons(stopButton()),
    ],
    over: (now) => (now.state === "paired" ? paired(now) : ended(now)),
  };
  draw(row);

  /** Words one by one, with a pause after each. */
  function speak(text) {
    spoken.textContent = "";
    setTimeout(() => (spoken.textContent = text), 80);
  }

  function draw(now) {
    clock.set(isLive(now) ? now.seconds_left : 0);
    const text = JSON.stringify([now.state, now.words, now.peer, now.code]);
    if (text === drawn) return;
    const held = body.contains(document.activeElement);
    drawn = text;
    fill(errorPlace);
    fill(heading, titleOf(now));
    fill(body, views[isLive(now) ? now.state : "over"](now));
    if (!isLive(now)) machines.touch();
    if (held && !body.contains(document.activeElement)) heading.focus();
  }

  async function stopped() {
    const { state } = await pairing.stop();
    if (state !== "paired") toast("Stopped; nothing was paired.");
    machines.touch();
  }

  function asking(now) {
    speak(`Asking ${nameOf(now)}.`);
    return [
      h("p", { class: "waiting" }, now.code ? "Trying the code on " : "Asking ", named(now), "…"),
      !now.code &&
        h("p", { class: "soft" }, withCode(`There: open Machines and choose Pair, or \`${there()}\`.`)),
      buttons(stopButton()),
    ];
  }

  function showCode({ code }) {
    speak(`The code is ${code.replace(/\d/g, "$& ").replaceAll("-", ". ")}.`);
    return [
      h("p", {}, "On the other machine type this code:"),
      h("p", { class: "shown-code" }, code),
      h("p", { class: "soft" }, withCode(`There: \`${there()} --code ${code}\``)),
      h("p", { class: "soft" }, "It is good for one pairing."),
      buttons(stopButton()),
    ];
  }

  function fourWords(now, quiet = false) {
    if (!quiet) speak(`The words are: ${now.words.join(". ")}. Are they the same on ${nameOf(now)}?`);
    return h(
      "ol",
      { class: "four-words", "aria-label": "Words to compare" },
      now.words.map((word) => h("li", {}, word)),
    );
  }

  function questions(now) {
    whose.ask([`Whose is `, named(now), "?"]);
    let told = false; // the buttons stay enabled: one that is disabled loses the keyboard
    const say = (same) => async () => {
      if (same && !whose.value) return whose.missing();
      if (told) return;
      told = true;
      told = await attemptIn(errorPlace, () => pairing.tell(same, same ? whose.value : ""));
    };
    return [
      whose.element,
      h(
        "div",
        { class: "verdicts", role: "group", "aria-label": "Are the words the same?" },
        actionButton("Different", say(false)),
        actionButton("Same words", say(true)),
      ),
    ];
  }

  function paired(now) {
    const known = () =>
      machines.paired.find(({ short, called }) => short === now.short && called === now.peer);
    const see = h("button", { type: "button", class: "secondary" }, "See it");
    see.addEventListener("click", async () => {
      await orShowFailure(() => machines.look());
      close();
      if (known()) location.hash = pageOf(known());
    });
    const trust = h("div", {});
    machines.look().then(() => {
      const peer = known();
      if (peer?.whose === "mine") fill(trust, trustPeer(peer.name, peer.fingerprint));
    }, calm);
    speak(`${nameOf(now)} is paired.`);
    return [
      h(
        "p",
        { class: "outcome" },
        h("span", { class: "sign good", "aria-hidden": "true" }, "✓ "),
        named(now),
        " is paired.",
      ),
      h("p", { class: "soft" }, "What it may do here, and ending it, are on its page."),
      trust,
      buttons(see, actionButton("Close", close, "primary")),
    ];
  }

  function ended(now) {
    const said = now.trouble || "Nothing was paired.";
    speak(`${said} ${now.do ?? ""}`);
    return [
      h(
        "p",
        { class: "outcome" },
        h("span", { class: "sign bad", "aria-hidden": "true" }, "✗ "),
        withCode(said),
      ),
      now.do && h("p", { class: "soft" }, h("span", { "aria-hidden": "true" }, "→ "), withCode(now.do)),
      buttons(actionButton("Close", close, "primary")),
    ];
  }

  function stopButton() {
    const stop = () => attemptIn(errorPlace, () => pairing.stop());
    return actionButton("Stop", stop);
  }
  return dialog;
}

/** Ignores a problem of the daemon: without the list there is nothing to offer. */
function calm(found) {
  if (found.code === undefined) throw found;
}

const titleOf = (now) => (now.peer ? ["Pair with ", named(now)] : "Pair with a code");

/** The command to type on the other machine. */
const there = () => `rappd peers pair ${typed(machines.self.name ?? daemon.name, machines.self.fingerprint)}`;

const buttons = (...some) => h("div", { class: "dialog-actions" }, some);

const AGAIN_MS = 1000;

/**
 * Tells `changed(row)` of every state from `row` on; each question waits in the daemon for another state.
 * `tell(same, whose)` is the owner's word, `stop()` wants no pairing: both resolve to the row that came of it.
 */
function followPairing(row, changed) {
  const control = new AbortController();
  let now = row;
  const take = (newer) => {
    if (!isLive(now)) return now;
    now = newer;
    changed(now);
    return now;
  };
  watch();

  async function watch() {
    while (isLive(now) && !control.signal.aborted) {
      const asked = performance.now();
      try {
        const { attempt, state } = now;
        const { pairing } = await pairings.show({ attempt, state }, { signal: control.signal });
        if (control.signal.aborted) return;
        const same = pairing.state === now.state;
        take(pairing);
        if (same && performance.now() - asked < AGAIN_MS) await pause();
      } catch (found) {
        if (found.name === "AbortError") return;
        if (!(found instanceof Problem)) throw found;
        if (found.status === 404) return take({ ...now, ...lost(found) });
        await pause(); // the daemon is away: its banner says so
      }
    }
  }

  return {
    get row() {
      return now;
    },
    tell: async (same, whose) =>
      take((await pairings.confirm({ attempt: now.attempt, same, ...(whose && { whose }) })).pairing),
    stop: async () => take((await pairings.stop({ attempt: now.attempt })).pairing),
    close: () => control.abort(),
  };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
const lost = (found) => ({ state: "stopped", trouble: found.message, do: found.todo, seconds_left: 0 });
