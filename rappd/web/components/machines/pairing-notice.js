/** Notice on every page that another machine wants to pair, until it is answered, wherever. */

import { hostOf, nameOf } from "./machine-words.js";
import { machines } from "./machines-state.js";
import { toast } from "../ui/toast.js";

const SECONDS = 20;

/** Starts the notices. */
export function startPairingNotices() {
  const closes = new Map(); // what closes a notice, by the attempt
  machines.addEventListener("change", () => {
    const asking = new Set(machines.asking.map(({ attempt }) => attempt));
    for (const [attempt, close] of closes) {
      if (asking.has(attempt)) continue;
      closes.delete(attempt);
      close();
    }
  });
  machines.addEventListener("asks", ({ detail }) => {
    if (document.querySelector("dialog[open]") || /^#\/(machines|waiting)\/?$/.test(location.hash)) return;
    const actions = [{ label: "Look", run: () => look(detail) }];
    closes.set(detail.attempt, toast(`${nameOf(detail)} (${hostOf(detail)}) wants to pair.`, { actions, seconds: SECONDS }));
  });
  machines.start();
}

async function look(asking) {
  const { openPairing } = await import("../pairing/pairing-dialog.js");
  openPairing(asking);
}
