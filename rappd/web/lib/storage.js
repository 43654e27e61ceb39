/** Browser storage: `localStorage`, or memory alone where storage is blocked. */

const PAGE = "rappd.";
const memory = new Map();
let prefix = PAGE;
let ended = false;

/** Keeps what follows apart for `whose`: on a phone, what was said as the owner and as a guest. */
export const storeFor = (whose) => (prefix = `${PAGE}${whose}.`);

/** The stored value (any JSON value), or `otherwise`. */
export function stored(name, otherwise = null) {
  try {
    const text = localStorage.getItem(prefix + name) ?? memory.get(name);
    return text === undefined || text === null ? otherwise : JSON.parse(text);
  } catch {
    return memory.has(name) ? JSON.parse(memory.get(name)) : otherwise;
  }
}

/** Stores a value; `null` deletes it. False when the browser's storage is full or blocked. */
export function store(name, value) {
  if (ended) return false;
  const text = JSON.stringify(value);
  try {
    if (value === null) localStorage.removeItem(prefix + name);
    else localStorage.setItem(prefix + name, text);
    memory.delete(name);
    return true;
  } catch {
    if (value === null) memory.delete(name);
    else memory.set(name, text);
    return false;
  }
}

/** Deletes all that is stored, and stores nothing any more until the page is loaded again. */
export function forgetStored() {
  ended = true;
  memory.clear();
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(PAGE)) localStorage.removeItem(name);
  } catch {
    // storage is blocked: nothing was kept
  }
}

/** Names of stored values that begin with `start`. */
export function storedNames(start) {
  const names = [...memory.keys()];
  try {
    for (let at = 0; at < localStorage.length; at += 1) {
      const name = localStorage.key(at);
      if (name.startsWith(prefix)) names.push(name.slice(prefix.length));
    }
  } catch {
    // storage is blocked: memory is all there is
  }
  return names.filter((name) => name.startsWith(start));
}

/** Calls `listener(value)` when another tab changes `name`. */
export function onStoredElsewhere(name, listener) {
  addEventListener("storage", (event) => {
    if (event.key === prefix + name) listener(event.newValue === null ? null : JSON.parse(event.newValue));
  });
}
