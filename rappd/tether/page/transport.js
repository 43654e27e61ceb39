// Two thin transports under one protocol: a WebRTC data channel, and a WebSocket where UDP is blocked.

import { same } from "./proofs.js";
import { sha256 } from "./sha256.js";
import { checked, described, ForeignAnswerError, ownFields, printOf } from "./webrtc-parameters.js";

const GATHER_MS = 1000;
const OPEN_MS = 8000;
const FRAME = 16 * 1024;
const PIECE = 5000;

/** Thrown when the daemon refuses; `code` is its slug. */
export class RefusedError extends Error {
  constructor(body) {
    super(body.error || "It did not work.");
    this.code = body.code || "";
  }
}

class Frames {
  constructor() {
    this.onmessage = () => {};
    this.onclose = () => {};
    this.pieces = [];
    this.early = [];
  }

  /** Delivers messages from now on, those that came before included. */
  listen(onmessage, onclose) {
    this.onmessage = onmessage;
    this.onclose = onclose;
    for (const message of this.early.splice(0)) onmessage(message);
    this.listening = true;
    if (this.closed) onclose();
  }

  take(raw) {
    let frame = JSON.parse(raw);
    if (frame.type === "chunk") {
      if (frame.n === 0) this.pieces = [];
      if (frame.n !== this.pieces.length) return;
      this.pieces.push(frame.data);
      if (this.pieces.length < frame.total) return;
      frame = JSON.parse(this.pieces.join(""));
      this.pieces = [];
    }
    if (this.listening) this.onmessage(frame);
    else this.early.push(frame);
  }

  send(message) {
    const raw = JSON.stringify(message);
    if (raw.length * 3 <= FRAME || new TextEncoder().encode(raw).length <= FRAME) {
      this.put(raw);
      return;
    }
    const total = Math.ceil(raw.length / PIECE);
    const id = Math.random().toString(16).slice(2, 10);
    for (let n = 0; n < total; n += 1) {
      this.put(JSON.stringify({ type: "chunk", id, n, total, data: raw.slice(n * PIECE, (n + 1) * PIECE) }));
    }
  }

  end() {
    if (this.closed) return;
    this.closed = true;
    this.shut();
    this.onclose();
  }
}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const found = await response.json();
  if (!response.ok) throw new RefusedError(found);
  return found;
}

function gathered(peer) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, GATHER_MS);
    peer.onicegatheringstatechange = () => {
      if (peer.iceGatheringState === "complete") {
        clearTimeout(timer);
        resolve();
      }
    };
  });
}

/**
 * SHA-256 of the certificate that DTLS verified: as the browser tells it where it can, else as it was told to verify.
 * Throws `ForeignAnswerError` where the two differ.
 */
function verifiedPrint(peer, told) {
  const [certificate] = peer.sctp?.transport?.getRemoteCertificates?.() ?? [];
  if (certificate && !same(sha256(new Uint8Array(certificate)), told)) throw new ForeignAnswerError("another certificate");
  return told;
}

/** Opens a data channel; `asked` names the window or the device. Gives `{frames, answer, hostPrint, guestPrint}`. */
export async function byWebRtc(asked, certificate) {
  const peer = new RTCPeerConnection({ iceServers: [], certificates: [certificate] });
  const channel = peer.createDataChannel("rapp", { ordered: true });
  const frames = new Frames();
  frames.put = (raw) => channel.readyState === "open" && channel.send(raw);
  frames.shut = () => peer.close();
  frames.secure = true;
  channel.onmessage = (event) => frames.take(event.data);
  channel.onclose = () => frames.end();
  peer.onconnectionstatechange = () => {
    if (["failed", "closed"].includes(peer.connectionState)) frames.end();
  };
  try {
    const ready = gathered(peer);
    await peer.setLocalDescription(await peer.createOffer());
    await ready;
    const { sdp } = peer.localDescription;
    const own = ownFields(sdp);
    const answer = await post("/tether/v2/offer", { ...asked, transport: own });
    const theirs = checked(answer.transport);
    await peer.setRemoteDescription({ type: "answer", sdp: described(theirs, sdp) });
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("no way by UDP")), OPEN_MS);
      channel.onopen = () => {
        clearTimeout(timer);
        resolve();
      };
      if (channel.readyState === "open") channel.onopen();
    });
    return { frames, answer, hostPrint: verifiedPrint(peer, printOf(theirs)), guestPrint: printOf(own) };
  } catch (error) {
    frames.closed = true;
    peer.close();
    throw error;
  }
}

/** The same over a WebSocket; no fingerprint binds it. */
export async function bySocket(asked) {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/tether/v2/socket`);
  const frames = new Frames();
  frames.put = (raw) => socket.readyState === WebSocket.OPEN && socket.send(raw);
  frames.shut = () => socket.close();
  frames.secure = location.protocol === "https:";
  socket.onmessage = (event) => frames.take(event.data);
  socket.onclose = () => frames.end();
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("no way by WebSocket"));
  });
  frames.put(JSON.stringify(asked));
  const answer = await new Promise((resolve, reject) => {
    frames.listen(resolve, () => reject(new Error("closed")));
    frames.listening = true;
  });
  frames.listening = false;
  if (answer.type !== "opened") throw new RefusedError(answer);
  const none = new Uint8Array(0);
  return { frames, answer, hostPrint: none, guestPrint: none };
}
