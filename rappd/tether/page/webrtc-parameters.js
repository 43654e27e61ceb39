// The fields that travel in place of session descriptions, as rappd/tether/webrtc_parameters.py has them. This page
// writes the description of the computer's side by itself: two readers of one text could find two certificates in it.

const MOST_CANDIDATES = 32;
const FIELDS = {
  ufrag: (text) => /^[A-Za-z0-9+/]{4,256}$/.test(text),
  pwd: (text) => /^[A-Za-z0-9+/]{22,256}$/.test(text),
  setup: (text) => text === "active" || text === "passive",
  fingerprint: (text) => /^(?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}$/.test(text),
};
const ADDRESS = /^[0-9A-Fa-f.:]{2,45}$/;

/** Thrown for fields that no computer of ours sends: somebody may be in between. */
export class ForeignAnswerError extends Error {}

/** The computer's fields, each checked; throws `ForeignAnswerError`. */
export function checked(found) {
  const isText = ([name, fits]) => typeof found[name] === "string" && fits(found[name]);
  const { candidates } = has(found, [...Object.keys(FIELDS), "candidates"]) ? found : {};
  if (!Array.isArray(candidates) || candidates.length > MOST_CANDIDATES
      || !Object.entries(FIELDS).every(isText) || !candidates.every(isCandidate)) {
    throw new ForeignAnswerError("The computer's answer is malformed.");
  }
  return found;
}

function has(found, names) {
  return found !== null && typeof found === "object" && Object.keys(found).sort().join() === [...names].sort().join();
}

function isCandidate(found) {
  return has(found, ["address", "port", "priority"]) && typeof found.address === "string" && ADDRESS.test(found.address)
    && isNumber(found.port, 65535) && isNumber(found.priority, 2 ** 31 - 1);
}

const isNumber = (value, most) => Number.isInteger(value) && value >= 1 && value <= most;

/** The fields of this browser's own description; what else it holds is left out. */
export function ownFields(sdp) {
  const lines = sdp.split(/\r?\n/);
  const value = (name) => lines.find((line) => line.startsWith(name))?.slice(name.length).trim() ?? "";
  const candidates = lines.filter((line) => line.startsWith("a=candidate:")).map((line) => line.split(" "))
    .filter(([, component, protocol, , , , , kind]) => component === "1" && protocol.toLowerCase() === "udp" && kind === "host")
    .map(([, , , priority, address, port]) => ({ address, port: Number(port), priority: Number(priority) }));
  return {
    ufrag: value("a=ice-ufrag:"),
    pwd: value("a=ice-pwd:"),
    setup: value("a=setup:"),
    fingerprint: value("a=fingerprint:sha-256 "),
    candidates: candidates.slice(0, MOST_CANDIDATES),
  };
}

/** The description of the computer's answer for this browser; `own` is the browser's offer, which names the section. */
export function described(fields, own) {
  const mid = /^a=mid:(\S+)/m.exec(own)[1];
  return [
    "v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0", `a=group:BUNDLE ${mid}`,
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "c=IN IP4 0.0.0.0", `a=mid:${mid}`,
    `a=ice-ufrag:${fields.ufrag}`, `a=ice-pwd:${fields.pwd}`,
    `a=fingerprint:sha-256 ${fields.fingerprint}`, `a=setup:${fields.setup}`, "a=sctp-port:5000", "a=max-message-size:65536",
    ...fields.candidates.map(({ address, port, priority }, at) => `a=candidate:${at + 1} 1 udp ${priority} ${address} ${port} typ host`),
    "",
  ].join("\r\n");
}

/** The fingerprint of fields, as 32 bytes. */
export const printOf = (fields) => Uint8Array.from(fields.fingerprint.split(":"), (pair) => parseInt(pair, 16));
