// The phone's side of the handshake: pairs by a code, or resumes; then hands the frames over.

import {
  b64, codeKey, commitment, digestOf, hostPin, proof, random, same, signedBy, signedWith, sixDigits, unb64,
} from "./proofs.js";
import { certificate, keep, kept, signingKey } from "./storage.js";
import { byWebRtc, bySocket, RefusedError } from "./transport.js";
import { ForeignAnswerError } from "./webrtc-parameters.js";
import { permitted } from "./unprotected.js";

/** Thrown when the two sides do not see the same connection: somebody may be in between. */
export class DiffersError extends Error {}
/** Thrown when the code is no good any more. */
export class ExpiredError extends Error {}
/** Thrown when the computer removed this phone. */
export class RemovedError extends Error {}

/** Refusals of the private line after which the WebSocket is asked for. */
const BY_SOCKET = ["tether_unavailable", "other_certificate"];

/** The invitation in the QR code's link, taken out of the address so that nobody reads it there; null without one. */
export function scanned() {
  const fields = new URLSearchParams(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  if (fields.get("v") !== "2") return null;
  try {
    return { window: fields.get("s"), key: unb64(fields.get("t")), pin: unb64(fields.get("k")) };
  } catch {
    return null;
  }
}

/** The same for a code that was typed. */
export const typed = (code) => ({ window: "", key: codeKey(code), pin: null });

/** Pairs. `compare(digits, machine)` asks the person; resolves to the open connection. */
export async function pair(invitation, name, compare) {
  const { frames, digest } = await prove({ window: invitation.window }, invitation.key, invitation.pin, name);
  return new Promise((resolve, reject) => {
    frames.listen(async (message) => {
      if (message.type === "paired") {
        frames.listening = false; // what comes next waits for the conversation
        await keep("device", { id: message.device, secret: message.secret, name: message.name, machine: frames.machine });
        resolve(frames);
      } else if (message.type === "stopped") {
        reject(message.reason === "differs" ? new DiffersError() : new ExpiredError());
        frames.end();
      }
    }, () => reject(new ExpiredError()));
    compare(sixDigits(digest), frames.machine).then((agrees) => {
      frames.send({ type: "confirm", same: agrees });
      if (!agrees) {
        reject(new DiffersError());
        setTimeout(() => frames.end(), 200);
      }
    });
  });
}

/** Resumes as the device that this phone is registered as. */
export async function resume(device) {
  const { frames } = await prove({ device: device.id }, unb64(device.secret), null, device.name);
  return new Promise((resolve, reject) => {
    frames.listen((message) => {
      if (message.type === "paired") {
        frames.listening = false;
        resolve(frames);
      } else if (message.type === "revoked") reject(new RemovedError());
    }, () => reject(new Error("closed")));
  });
}

async function prove(asked, key, pin, name) {
  const nonce = random(16);
  const offer = { ...asked, commit: b64(commitment(nonce)) };
  const opened = await open(offer);
  const { frames, answer, hostPrint, guestPrint } = opened;
  frames.machine = answer.machine;
  const hostKey = unb64(answer.host_key);
  if (pin && !same(hostPin(hostKey), pin)) {
    frames.end();
    throw new DiffersError();
  }
  const digest = digestOf({
    subject: answer.subject,
    hostPrint,
    guestPrint,
    hostNonce: unb64(answer.nonce),
    guestNonce: nonce,
    hostKey,
  });
  const identity = asked.device && guestPrint.length ? {} : await signedWith(await signingKey(), digest);
  frames.send({ type: "auth", nonce: b64(nonce), mac: b64(proof(key, "guest", digest)), name, ...identity });
  const reply = await new Promise((resolve, reject) => {
    frames.listen(resolve, () => reject(new ExpiredError()));
  });
  frames.listening = false;
  if (reply.type === "stopped") {
    frames.end();
    throw reply.reason === "differs" ? new DiffersError() : new ExpiredError();
  }
  if (reply.type !== "auth_ok" || !same(unb64(reply.mac), proof(key, "host", digest))) {
    frames.end();
    throw new DiffersError();
  }
  if ((await signedBy(hostKey, unb64(reply.signature), digest)) === false) {
    frames.end();
    throw new DiffersError();
  }
  return { frames, digest };
}

async function open(offer) {
  try {
    if (!globalThis.RTCPeerConnection) throw new Error("no WebRTC in this browser");
    return await byWebRtc(offer, await certificate());
  } catch (error) {
    if (error instanceof RefusedError && !BY_SOCKET.includes(error.code)) throw refusal(error);
    if (error instanceof ForeignAnswerError) throw new DiffersError();
    if (error instanceof TypeError) throw error; // the computer cannot be reached at all
    await permitted(); // before the first byte goes over it
    try {
      return await bySocket(offer);
    } catch (second) {
      throw second instanceof RefusedError ? refusal(second) : second;
    }
  }
}

function refusal(error) {
  if (error.code === "unknown_device") return new RemovedError();
  return error.code === "code_expired" ? new ExpiredError() : error;
}

export const registered = () => kept("device");
