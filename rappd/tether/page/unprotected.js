// The question before anything crosses the Wi-Fi unprotected: over a WebSocket on plain http.

const KEY = "talks-unprotected";
let ask = async () => false;
let allowed = false;

/** Thrown when the person does not want that. */
export class StoppedError extends Error {}

/** `asking()` resolves to true when the person talks anyway. */
export function askUnprotected(asking) {
  ask = asking;
}

/** Resolves once a WebSocket may be opened. The answer counts until this tab is closed. Throws `StoppedError`. */
export async function permitted() {
  if (location.protocol === "https:" || allowed || remembered()) return;
  if (!(await ask())) throw new StoppedError();
  allowed = true;
  try {
    sessionStorage.setItem(KEY, "yes");
  } catch {
    // storage is blocked: it is asked again after a reload
  }
}

function remembered() {
  try {
    return sessionStorage.getItem(KEY) === "yes";
  } catch {
    return false;
  }
}
