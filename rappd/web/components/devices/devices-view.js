/** Devices: the pairing that goes on, and the phones that joined. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { sessionList } from "../sessions/session-list.js";
import { keyedList } from "../ui/keyed-list.js";
import { attemptIn } from "../ui/problem.js";
import { staleList } from "../ui/stale-list.js";
import { workflowList } from "../workflows/workflow-list.js";
import { openRemoveDevice, openRenameDevice, openRights, openSendTwin } from "./device-dialogs.js";
import { kindOf, named, nameOf, presence, rights, seenFrom } from "./device-words.js";
import { devices, isLive } from "./devices-state.js";
import { addPhone, openPhonePairing, takeBack } from "./phone-pairing.js";

const TICK_MS = 15_000;

/** Fills `place`; `close()` when done. */
export function devicesView(place) {
  const errorPlace = h("div", {});
  const add = (kind) =>
    actionButton("Add a phone", () => attemptIn(errorPlace, addOrShow), kind);
  const controls = h("div", { class: "twin-controls", hidden: true }, add("secondary"));
  const pairing = pairingCard(errorPlace);
  const cards = keyedList("ul", "cards", ({ id }) => id, deviceCard);
  const empty = h(
    "div",
    { class: "no-twins" },
    h("p", { class: "greeting" }, "No phone yet."),
    h("p", { class: "soft" }, "A phone joins by scanning a QR code here, over this Wi-Fi. Nothing is installed on it."),
    h("div", { class: "twin-controls" }, add("primary")),
  );
  const talked = sessionList();
  const flows = workflowList();
  const heading = h("h2", { class: "visually-hidden" }, "Phones that joined");
  const inside = h("div", {}, pairing.element, empty, heading, cards.element, talked.element, flows.element);
  const body = h("div", {});
  fill(place, errorPlace, controls, body);

  const draw = () => {
    const none = devices.rows.length === 0;
    controls.hidden = none;
    empty.hidden = !none || isLive(devices.pairing);
    heading.hidden = none;
    cards.show(devices.rows);
    pairing.show(devices.pairing);
  };
  let first = true;
  const list = staleList(body, {
    name: "devices",
    load: async () => {
      await devices.look();
      if (first) reopen();
      first = false;
      return { known: true };
    },
    draw: () => (draw(), inside),
  });
  const tick = setInterval(() => document.hidden || devices.touch(), TICK_MS);
  devices.addEventListener("change", draw);
  return {
    close() {
      first = false;
      clearInterval(tick);
      devices.removeEventListener("change", draw);
      cards.close();
      talked.close();
      flows.close();
      list.close();
    },
  };
}

/** A phone that waits for the owner's answer comes back after a reload. */
function reopen() {
  if (["compare", "waiting"].includes(devices.pairing.state) && !document.querySelector("dialog[open]"))
    openPhonePairing();
}

/** A code that is shown already is shown again: there is one at a time. */
async function addOrShow() {
  await devices.look();
  if (isLive(devices.pairing)) openPhonePairing();
  else await addPhone();
}

/** The pairing that goes on, above the list. */
function pairingCard(errorPlace) {
  const words = h("p", {});
  const show = h("button", { type: "button", class: "primary", onclick: () => openPhonePairing() });
  const end = h("button", {
    type: "button",
    class: "quiet",
    onclick: () => attemptIn(errorPlace, takeBack),
  });
  const element = h(
    "div",
    { class: "card machine asks pairing-card", hidden: true },
    h("div", { class: "card-words" }, words),
    h("div", { class: "card-actions" }, show, end),
  );
  let drawn = "";
  return {
    element,
    show(now) {
      element.hidden = !isLive(now);
      const text = JSON.stringify([now.state, now.name]);
      if (text === drawn) return;
      drawn = text;
      const says = {
        open: ["A QR code is shown.", "Show it"],
        compare: [[named(now), " wants to join."], "Compare"],
        waiting: [["Now tap “Same number” on ", named(now), "."], "Look"],
      }[now.state];
      if (!says) return;
      fill(words, says[0]);
      fill(show, says[1]);
      fill(end, now.state === "open" ? "Cancel the code" : "Stop");
    },
  };
}

const SEND = "Send a twin to %s";

/** The card of a row of `devices.rows`. `update(row)` when there is a newer one. */
function deviceCard(row) {
  const title = h("h3", {});
  const now = h("p", {});
  const soft = h("p", { class: "soft" });
  const buttons = [
    ["Permissions", "secondary", "Permissions of %s", openRights],
    ["Send a twin", "quiet", SEND, openSendTwin],
    ["Rename", "quiet", "Rename %s", openRenameDevice],
    ["Remove", "quiet", "Remove %s", openRemoveDevice],
  ].map(([text, kind, label, open]) => ({
    label,
    button: actionButton(text, () => open(row), kind),
  }));
  const element = h(
    "li",
    { class: "card machine", "data-device": row.id },
    h("div", { class: "card-words" }, title, now, soft),
    h("div", { class: "card-actions" }, buttons.map(({ button }) => button)),
  );
  const update = (newer) => {
    row = newer;
    fill(title, named(row));
    fill(now, presence(row));
    fill(soft, [kindOf(row), rights(row), seenFrom(row)].filter(Boolean).join(" · "));
    buttons.find(({ label }) => label === SEND).button.hidden = !row.eggs;
    for (const { label, button } of buttons)
      button.setAttribute("aria-label", label.replace("%s", () => nameOf(row)));
  };
  update(row);
  return { element, update, close: () => undefined };
}
