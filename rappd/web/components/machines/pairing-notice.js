/** Notice on every page that another machine wants to pair. */

import { hostOf, nameOf } from "./machine-words.js";
import { machines } from "./machines-state.js";
import { toast } from "../ui/toast.js";

const SECONDS = 20;

/** Starts the notices. */
export function startPairingNotices() {
  machines.addEventListener("asks", ({ detail }) => {
    if (document.querySelector("dialog[open]") || /^#\/(machines|waiting)\/?$/.test(location.hash)) return;
    toast(`${nameOf(detail)} (${hostOf(detail)}) wants to pair.`, {
      actions: [{ label: "Look", run: () => look(detail) }],
      seconds: SECONDS,
    });
  });
  machines.start();
}

async function look(asking) {
  const { openPairing } = await import("../pairing/pairing-dialog.js");
  openPairing(asking);
}
