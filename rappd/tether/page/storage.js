// The storage of this phone: its certificate and the device's secret, in IndexedDB; in memory where storage is blocked.

import { element } from "./element.js";
import { forgetStored } from "./web/lib/storage.js";

const memory = new Map();
let blocked = false;
let opened = null;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("rappd-tether", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("kept");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("blocked"));
  });
  return opened;
}

async function run(mode, work) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction("kept", mode);
    const request = work(transaction.objectStore("kept"));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = () => reject(transaction.error);
    transaction.onabort = () => reject(transaction.error);
  });
}

export async function keep(name, value) {
  memory.set(name, value);
  try {
    await run("readwrite", (store) => store.put(value, name));
  } catch {
    blocked = true;
  }
}

export async function kept(name) {
  if (memory.has(name)) return memory.get(name);
  try {
    return await run("readonly", (store) => store.get(name));
  } catch {
    blocked = true;
    return undefined;
  }
}

/**
 * Forgets this phone with its certificate and keys, and all that was said here. What the page still holds is stored no
 * more: it has to be loaded anew.
 */
export async function forgetAll() {
  memory.clear();
  forgetStored();
  try {
    indexedDB.deleteDatabase("rappd-pictures");
    await run("readwrite", (store) => store.clear());
  } catch {
    blocked = true;
  }
}

/** True when this browser forgets everything at the next visit. */
export const isBlocked = () => blocked;

const YEAR = 365 * 24 * 3600 * 1000;

/** The certificate that is this phone's identity: made once, its key never readable. */
export async function certificate() {
  const found = await kept("certificate");
  if (found && found.expires > Date.now() + 24 * 3600 * 1000) return found;
  const made = await RTCPeerConnection.generateCertificate({ name: "ECDSA", namedCurve: "P-256", expires: YEAR });
  keep("certificate", made); // written while the connection is made, and before what is kept later
  return made;
}

/** A key of P-256 that is this phone's identity over a WebSocket, never readable; null where the origin gives none. */
export async function signingKey() {
  if (!globalThis.crypto.subtle) return null;
  const found = await kept("key");
  if (found) return found;
  const made = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
  keep("key", made);
  return made;
}

const WAYS = [
  [/Edg/, "Edge: Settings, Privacy, Tracking prevention, Exceptions"],
  [/Firefox|FxiOS/, "Firefox: the shield beside the address, and switch protection off for this page"],
  [/iPhone|iPad|Macintosh/, "Safari: leave private browsing; on a Mac, Settings, Privacy, and do not block all cookies"],
  [/./, "Chrome: Settings, Site settings, On-device site data, Allowed to save data"],
];

/** The warning where storage is blocked, with the way to an exception for this page. */
export function forgets() {
  const [, way] = WAYS.find(([agent]) => agent.test(navigator.userAgent));
  return element("details", { className: "forgets" },
    element("summary", {}, "This browser forgets. Next time you need a new QR code."),
    element("p", {}, `To keep this phone known here, allow this address to keep data: ${way}; add ${location.host}.`));
}
