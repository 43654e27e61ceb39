/** Words for other machines. Their own text loses control characters and is isolated from ours. */

import { ago, clock, count, stripControl, timeOrDay } from "../../lib/format.js";
import { breakable, h, visuallyHidden } from "../../lib/dom.js";

const LONGEST_NAME = 40;
const LIVE = ["asking", "words", "waiting"];

/** A machine's name for a sentence: tamed; a long one loses its middle; "a machine" when nothing is left. */
export function nameOf(row) {
  const name = stripControl(row.name || row.peer).trim() || stripControl(row.address) || "a machine";
  const letters = [...name];
  if (letters.length <= LONGEST_NAME) return name;
  return `${letters.slice(0, 24).join("")}…${letters.slice(-12).join("")}`;
}

/** The name as an element of its own, so that its direction of writing stays in it. */
export const named = (row) => h("bdi", {}, breakable(nameOf(row)));

/** "192.168.1.12" of "192.168.1.12:7443" */
export const hostOf = ({ address }) =>
  stripControl(address)
    .replace(/:\d+$/, "")
    .replace(/^\[|\]$/g, "");

/** The selector of a machine in the page's address and in requests. */
export const selectorOf = (row) => row.fingerprint || row.address;

/** Address of a peer's page. */
export const pageOf = ({ fingerprint }) => `#/machines/peer/${encodeURIComponent(fingerprint)}`;

/** A machine's name for the command line, without characters that a shell interprets. */
export const typed = (name, fingerprint) =>
  /^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name) ? name : String(fingerprint ?? "").slice(0, 8);

/** True while a pairing can still succeed. */
export const isLive = ({ state }) => LIVE.includes(state);

/** "● here, 2 ms", "○ last seen 12 s ago", "· found", as nodes. */
export function presence(row) {
  const [mark, kind, text] = {
    here: ["●", "good", row.ms ? `here, ${milliseconds(row.ms)}` : "here"],
    away: ["○", "soft", row.since ? `last seen ${ago(row.since)}` : "away, never seen"],
    found: ["·", "soft", "found"],
    "written down": ["·", "soft", "written down"],
  }[row.presence] ?? ["·", "soft", row.presence ?? ""];
  return [h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, `${mark} `), text];
}

/** "nearby · 3 agents · 4 in the outbox" */
export function facts(row) {
  if (row.legacy) {
    const kind = row.kind === "agent" ? "an A2A agent" : "a published brainstem";
    const way = String(row.address).startsWith("http://") ? ", over plain http" : "";
    return [kind + way, stripControl(row.address)].join(" · ");
  }
  return [
    row.reached && by(row.reached),
    !row.paired && stripControl(row.address),
    row.paired && (row.whose === "mine" ? "yours" : "a friend's"),
    row.paired && row.presence === "here" && count(row.agents ?? 0, "agent"),
    row.waiting > 0 && `${row.waiting} in the outbox`,
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The reason why a peer that answers is not talked to; being offline is none. */
export function troubleOf(row) {
  const errorPlace = row.trouble || "";
  return / is (away|busy)( \(\d+\))?\.$/.test(errorPlace) ? "" : stripControl(errorPlace);
}

/** The way out of what `troubleOf` says. */
export function wayOut(row) {
  if (troubleOf(row).includes("key has changed"))
    return "Reinstalled? Revoke it and pair anew. Else keep away.";
  return isDistrusted(row) ? "Pair anew if both owners want it; else revoke it here, too." : "";
}

/** True for a paired machine that ended the trust. */
export const isDistrusted = (row) => troubleOf(row).includes("does not trust this machine");

/** "its key begins with 4f2a", seen as "4f2a" */
export const short = (row) =>
  row.short && h("code", { class: "key-start" }, visuallyHidden("key begins with "), row.short);

/** "1:05" */
export const minutes = (seconds) =>
  `${Math.floor(seconds / 60)}:${String(Math.max(0, Math.floor(seconds % 60))).padStart(2, "0")}`;

/** "12 s", "3 min", "22 h", "2 days" */
export const span = (seconds) => ago(0, Math.max(0, seconds)).replace(/ ago$/, "");

/** "until 18:20", "until tomorrow", "until 24 Nov", of seconds since 1970 */
export function until(seconds, now = new Date()) {
  const then = new Date(seconds * 1000);
  if (then.toDateString() === now.toDateString()) return `until ${clock(then)}`;
  const tomorrow = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
  return then.toDateString() === tomorrow.toDateString() ? "until tomorrow" : `until ${timeOrDay(then)}`;
}

const by = (source) => ({ list: "the list in peers.json", typed: "an address added by hand" })[source] ?? source;
const milliseconds = (ms) => (ms < 950 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`);
