// Derivations of the handshake rapp-tether/2, as rappd/tether/proofs.py has them; docs/wire.md has a vector for each.

import { hmac, joined, sha256 } from "./sha256.js";

const text = (value) => new TextEncoder().encode(value);
const CONTEXT = "rapp-tether/2";

export const random = (length) => crypto.getRandomValues(new Uint8Array(length));

export function b64(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function unb64(encoded) {
  const plain = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

/** The promise of a nonce, given before the other side's is seen. */
export const commitment = (nonce) => sha256(joined(text(`${CONTEXT} commit`), nonce));

/** SHA-256 over all that both sides saw, each part with its length before it. */
export function digestOf({ subject, hostPrint, guestPrint, hostNonce, guestNonce, hostKey }) {
  const parts = [text(subject), hostPrint, guestPrint, hostNonce, guestNonce, hostKey];
  const prefixed = parts.flatMap((part) => {
    const length = new Uint8Array(4);
    new DataView(length.buffer).setUint32(0, part.length);
    return [length, part];
  });
  return sha256(joined(text(CONTEXT), ...prefixed));
}

export const proof = (key, side, digest) => hmac(key, joined(text(side), digest));

export function sixDigits(digest) {
  const found = sha256(joined(text(`${CONTEXT} sas`), digest));
  const number = new DataView(found.buffer).getUint32(0) % 1_000_000;
  const digits = String(number).padStart(6, "0");
  return `${digits.slice(0, 3)} ${digits.slice(3)}`;
}

export const hostPin = (hostKey) => sha256(hostKey).slice(0, 16);

export function codeKey(code) {
  const plain = code
    .replace(/[\s-]/g, "")
    .toUpperCase()
    .replace(/[IL]/g, "1")
    .replace(/O/g, "0");
  return sha256(joined(text(`${CONTEXT} code`), text(plain)));
}

export const same = (one, other) => one.length === other.length && one.every((byte, index) => byte === other[index]);

/** True when the machine's P-256 key signed the digest; null where this browser cannot check it. */
export async function signedBy(hostKey, signature, digest) {
  if (!crypto.subtle) return null;
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const key = await crypto.subtle.importKey("spki", hostKey, algorithm, false, ["verify"]);
  return crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, signature, digest);
}

/** The part of `auth` on this phone's own key, which signs the digest; nothing without one. */
export async function signedWith(pair, digest) {
  if (!pair) return {};
  const signed = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, pair.privateKey, joined(text(`${CONTEXT} key`), digest));
  const point = await crypto.subtle.exportKey("raw", pair.publicKey);
  return { key: b64(new Uint8Array(point)), key_signature: b64(new Uint8Array(signed)) };
}

export function newId() {
  const bytes = random(16);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
