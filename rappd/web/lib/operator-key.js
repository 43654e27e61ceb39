/**
 * The key pair of this browser, which signs the operator's requests: nothing that travels is enough to repeat one.
 *
 * It lies in IndexedDB, of this page's origin alone, and shared by its tabs; the private half can't be read
 * by any script, this one included.
 */

const DATABASE = "rappd";
const KEYS = "keys";
const OPERATOR = "operator";
const VERSION = "rappd-request-1";
const OPENED_MS = 5000; // a browser that blocks storage may never answer

const CURVE = { name: "ECDSA", namedCurve: "P-256" };
const SIGNED = { name: "ECDSA", hash: "SHA-256" };

let pair = storedPair(); // promise of {privateKey, publicKey}, or of nothing; begun while the page is still being loaded
let clockAhead = 0; // ms by which the daemon's clock is ahead of this one
let last = Promise.resolve();

/** Raised where the browser keeps no keys. */
export class NoKeyError extends Error {}

/** Sets the time by which requests are signed, and looks for the key anew: another tab may have made one. */
export function signAnew(now) {
  if (now) clockAhead = now - Date.now();
  pair = storedPair();
}

/**
 * The request for the one-use key `text`: its name, this browser's public key, and the proof that binds
 * the two. The key itself stays here. Raises `NoKeyError`.
 */
export async function linkProof(text) {
  const made = await makePair();
  pair = Promise.resolve(made);
  const public_key = await publicText(made);
  const secret = await crypto.subtle.importKey("raw", utf8(text), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const proof = await crypto.subtle.sign("HMAC", secret, utf8(`rappd operator session\n${public_key}`));
  return { link: base64(await sha256(utf8(`rappd operator link\n${text}`))), public_key, proof: base64(proof) };
}

/**
 * The signature of a request, or "" where this browser has no key. Signatures are given in the order in which they were
 * asked for, so that requests leave in that order, too. `body` is bytes, or a `Blob` of which the length is signed.
 */
export function signature(request) {
  last = last.then(
    () => sign(request),
    () => sign(request),
  );
  return last;
}

/** The address `link`, signed for one fetch without headers; "" without a key. */
export async function signedLink(link) {
  const text = await signature({ method: "GET", path: link });
  if (!text) return "";
  const [, start, ticket, rest] = /^(\/eggs\/out\/)([^/]+)(\/.+)$/.exec(link);
  return `${start}${ticket}/${await publicText(await pair)}.${text}${rest}`;
}

async function sign({ method, path, type = "", body = new Uint8Array() }) {
  const key = (await pair)?.privateKey;
  if (!key) return "";
  const { pathname, search, host } = new URL(path, location.href);
  const hashed = body instanceof Blob ? `length=${body.size}` : `sha256=${base64(await sha256(body))}`;
  const at = Math.floor(Date.now() + clockAhead);
  const nonce = base64(crypto.getRandomValues(new Uint8Array(16)));
  const text = [VERSION, method, host, pathname + search, at, nonce, type, hashed].join("\n");
  return `${at}.${nonce}.${hashed}.${base64(await crypto.subtle.sign(SIGNED, key, utf8(text)))}`;
}

/** The pair that was stored before, or nothing. */
function storedPair() {
  return inDatabase("readonly", (keys) => keys.get(OPERATOR)).catch(() => null);
}

/** The stored pair; a new one where there is none. Of two tabs that make one at once, one is kept by both. */
async function makePair() {
  try {
    const fresh = await crypto.subtle.generateKey(CURVE, false, ["sign"]);
    const keepFirst = (keys) => {
      const known = keys.get(OPERATOR);
      known.onsuccess = () => {
        try {
          if (!known.result) keys.put(fresh, OPERATOR);
        } catch {
          keys.transaction.abort(); // some private windows keep no keys
        }
      };
      return known;
    };
    return (await inDatabase("readwrite", keepFirst)) ?? fresh;
  } catch (found) {
    pair = Promise.resolve(null); // nobody waits for such a browser twice
    throw new NoKeyError("This browser keeps no key here.", { cause: found });
  }
}

/** Performs `work(store)`, which gives a request, and resolves to its result once all is stored. */
async function inDatabase(mode, work) {
  const database = await opened();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(KEYS, mode);
      const request = work(transaction.objectStore(KEYS));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = transaction.onerror = () => reject(transaction.error);
    });
  } finally {
    database.close(); // so that clearing the browser's data never waits for this page
  }
}

function opened() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, 1);
    const timer = setTimeout(() => reject(new Error("IndexedDB does not answer.")), OPENED_MS);
    opening.onupgradeneeded = () => opening.result.createObjectStore(KEYS);
    opening.onsuccess = () => (clearTimeout(timer), resolve(opening.result));
    opening.onerror = () => (clearTimeout(timer), reject(opening.error));
  });
}

const publicText = async ({ publicKey }) => base64(await crypto.subtle.exportKey("raw", publicKey));
const sha256 = (octets) => crypto.subtle.digest("SHA-256", octets);
const utf8 = (text) => new TextEncoder().encode(text);

function base64(octets) {
  const text = btoa(String.fromCharCode(...new Uint8Array(octets)));
  return text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
