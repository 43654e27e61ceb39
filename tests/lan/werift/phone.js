// A phone that is no browser: speaks rapp-tether/2 as docs/wire.md has it, over werift's WebRTC.
//
//   node phone.js pair LINK KEPT TEXT       joins, says TEXT, prints the digits and the answer
//   node phone.js resume HOST:PORT KEPT TEXT [--stranger]
//
// KEPT is the file with the device and its certificate. A --stranger has the secret without the certificate.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const { createSelfSignedCertificate, HashAlgorithm, NamedCurveAlgorithm, RTCPeerConnection, SignatureAlgorithm } = require("werift");

const CONTEXT = Buffer.from("rapp-tether/2");
const PIECE = 5000;
const b64 = (bytes) => Buffer.from(bytes).toString("base64url");
const unb64 = (text) => Buffer.from(text, "base64url");
const sha256 = (...parts) => crypto.createHash("sha256").update(Buffer.concat(parts)).digest();
const hmac = (key, side, digest) => crypto.createHmac("sha256", key).update(Buffer.concat([Buffer.from(side), digest])).digest();
const tell = (line) => console.log(JSON.stringify(line));

function check(condition, what) {
  if (!condition) throw new Error(what);
}

const printOf = (fields) => Buffer.from(fields.fingerprint.replaceAll(":", ""), "hex");

/** The fields that travel, out of this library's own description. */
function ownFields(sdp) {
  const lines = sdp.split("\r\n");
  const value = (name) => lines.find((line) => line.startsWith(name)).slice(name.length);
  const candidates = lines.filter((line) => line.startsWith("a=candidate:")).map((line) => line.split(" "))
    .filter((parts) => parts[2].toLowerCase() === "udp" && parts[7] === "host")
    .map((parts) => ({ address: parts[4], port: Number(parts[5]), priority: Number(parts[3]) }));
  return {
    ufrag: value("a=ice-ufrag:"), pwd: value("a=ice-pwd:"), setup: value("a=setup:"),
    fingerprint: value("a=fingerprint:sha-256 "), candidates,
  };
}

/** The description of the computer's answer for this library. */
function described(fields, own) {
  const mid = /^a=mid:(\S+)/m.exec(own)[1];
  const candidates = fields.candidates.map((one, at) => `a=candidate:${at} 1 udp ${one.priority} ${one.address} ${one.port} typ host`);
  return [
    "v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0", `a=group:BUNDLE ${mid}`,
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "c=IN IP4 0.0.0.0", `a=mid:${mid}`,
    `a=ice-ufrag:${fields.ufrag}`, `a=ice-pwd:${fields.pwd}`, `a=fingerprint:sha-256 ${fields.fingerprint}`,
    `a=setup:${fields.setup}`, "a=sctp-port:5000", "a=max-message-size:65536", ...candidates, "",
  ].join("\r\n");
}

function digestOf(...parts) {
  const prefixed = parts.flatMap((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    return [length, part];
  });
  return sha256(CONTEXT, ...prefixed);
}

function sixDigits(digest) {
  const number = sha256(CONTEXT, Buffer.from(" sas"), digest).readUInt32BE() % 1_000_000;
  const text = String(number).padStart(6, "0");
  return `${text.slice(0, 3)} ${text.slice(3)}`;
}

/** Frames in and out of the data channel; `next(kind)` waits for a message of that kind. */
class Line {
  constructor(channel) {
    this.channel = channel;
    this.messages = [];
    this.pieces = [];
    this.waiting = null;
    channel.onMessage.subscribe((data) => this.take(JSON.parse(data.toString())));
  }

  take(frame) {
    if (frame.type === "chunk") {
      this.pieces.push(frame.data);
      if (this.pieces.length < frame.total) return;
      frame = JSON.parse(this.pieces.splice(0).join(""));
    }
    if (frame.type === "ping") this.send({ type: "pong" });
    else this.messages.push(frame);
    if (this.waiting) this.waiting();
  }

  async next(fits) {
    for (;;) {
      const at = this.messages.findIndex(fits);
      if (at >= 0) return this.messages.splice(at, 1)[0];
      await new Promise((resolve) => (this.waiting = resolve));
    }
  }

  send(message) {
    const text = JSON.stringify(message);
    if (Buffer.byteLength(text) <= 16384) return void this.channel.send(text);
    const total = Math.ceil(text.length / PIECE);
    const id = crypto.randomBytes(4).toString("hex");
    for (let n = 0; n < total; n += 1) {
      this.channel.send(JSON.stringify({ type: "chunk", id, n, total, data: text.slice(n * PIECE, (n + 1) * PIECE) }));
    }
  }
}

async function certificate() {
  const { certPem, keyPem, signatureHash } = await createSelfSignedCertificate(
    { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 }, NamedCurveAlgorithm.secp256r1_23,
  );
  return { certPem, keyPem, signatureHash };
}

async function post(address, body) {
  const response = await fetch(`http://${address}/tether/v2/offer`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const found = await response.json();
  if (!response.ok) throw new Error(`${response.status} ${found.code}`);
  return found;
}

/** Steps 2 to 5: the open channel, and the digest that both sides agree on. */
async function prove(address, asked, key, pin, keys) {
  const peer = new RTCPeerConnection({ iceServers: [], dtls: { keys } });
  const channel = peer.createDataChannel("rapp", { ordered: true });
  const line = new Line(channel);
  const open = new Promise((resolve) => channel.stateChanged.subscribe((state) => state === "open" && resolve()));
  await peer.setLocalDescription(await peer.createOffer());
  while (peer.iceGatheringState !== "complete") await new Promise((resolve) => setTimeout(resolve, 10));
  const nonce = crypto.randomBytes(16);
  const commit = b64(sha256(CONTEXT, Buffer.from(" commit"), nonce));
  const sdp = peer.localDescription.sdp;
  const own = ownFields(sdp);
  const answer = await post(address, { ...asked, transport: own, commit });
  const hostKey = unb64(answer.host_key);
  if (pin) check(sha256(hostKey).subarray(0, 16).equals(pin), "another computer's key");
  await peer.setRemoteDescription({ type: "answer", sdp: described(answer.transport, sdp) });
  await open;
  const digest = digestOf(
    Buffer.from(answer.subject), printOf(answer.transport), printOf(own), unb64(answer.nonce), nonce, hostKey,
  );
  line.send({ type: "auth", nonce: b64(nonce), name: "Werift", mac: b64(hmac(key, "guest", digest)) });
  const reply = await line.next(() => true);
  check(reply.type === "auth_ok", `stopped: ${reply.reason}`);
  check(unb64(reply.mac).equals(hmac(key, "host", digest)), "the computer's proof is wrong");
  const signer = crypto.createPublicKey({ key: hostKey, format: "der", type: "spki" });
  const signature = { key: signer, dsaEncoding: "ieee-p1363" };
  check(crypto.verify("sha256", digest, signature, unb64(reply.signature)), "the computer's signature is wrong");
  return { peer, line, digest };
}

async function talk(line, text) {
  line.send({ type: "hello", last_seq: 0, session: "" });
  const welcome = await line.next((one) => one.type === "welcome");
  const id = crypto.randomUUID();
  line.send({ type: "say", event_id: id, text, to: "", via: "" });
  const isAnswer = (event) => event.kind === "twin_response" && event.event_id === id;
  const seen = await line.next((one) => one.type === "events" && one.events.some(isAnswer));
  tell({ session: welcome.session, answer: seen.events.find(isAnswer).text });
}

async function run(what, where, kept, text, stranger) {
  let line, peer;
  const fresh = await certificate();
  if (what === "pair") {
    const link = new URL(where);
    const fields = new URLSearchParams(link.hash.slice(1));
    check(link.pathname === "/t" && fields.get("v") === "2", "another version");
    const proved = await prove(link.host, { window: fields.get("s") }, unb64(fields.get("t")), unb64(fields.get("k")), fresh);
    ({ line, peer } = proved);
    tell({ digits: sixDigits(proved.digest) });
    line.send({ type: "confirm", same: true });
    const device = await line.next((one) => one.type === "paired");
    fs.writeFileSync(kept, JSON.stringify({ device, keys: fresh }));
  } else {
    const { device, keys } = JSON.parse(fs.readFileSync(kept, "utf8"));
    const own = stranger ? fresh : keys;
    ({ line, peer } = await prove(where, { device: device.device }, unb64(device.secret), null, own));
    check(!("secret" in (await line.next((one) => one.type === "paired"))), "the secret came again");
  }
  await talk(line, text);
  line.send({ type: "bye" });
  await peer.close();
}

const [what, where, kept, text, more] = process.argv.slice(2);
run(what, where, kept, text, more === "--stranger").then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
