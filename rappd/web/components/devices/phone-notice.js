/** Notice on every page that a phone waits for the owner's answer, until that is given, wherever. */

import { toast } from "../ui/toast.js";
import { devices } from "./devices-state.js";
import { nameOf } from "../machines/machine-words.js";

const SECONDS = 20;

/** Starts the notices. */
export function startPhoneNotices() {
  let close = () => undefined;
  devices.addEventListener("change", () => devices.pairing.state === "compare" || close());
  devices.addEventListener("asks", () => {
    if (document.querySelector("dialog[open]") || /^#\/(devices|waiting)\/?$/.test(location.hash)) return;
    close = toast(`${nameOf(devices.pairing)} wants to join.`, {
      actions: [{ label: "Compare", run: compare }],
      seconds: SECONDS,
    });
  });
  devices.start();
}

async function compare() {
  const { openPhonePairing } = await import("./phone-pairing.js");
  openPhonePairing();
}
