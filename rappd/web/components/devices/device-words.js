/** Labels of phones. The name is the phone's own word for itself: it is tamed as foreign text is. */

import { h } from "../../lib/dom.js";
import { ago, stripControl } from "../../lib/format.js";
import { nameOf } from "../machines/machine-words.js";

export { nameOf, named } from "../machines/machine-words.js";

const WAYS = { webrtc: "", websocket: ", over a WebSocket" };

/** "● connected", "○ last seen 2 h ago", as nodes. */
export function presence(row) {
  const [mark, kind, text] = row.connected
    ? ["●", "good", `connected${WAYS[row.way] ?? ""}`]
    : ["○", "soft", `last seen ${ago(row.seen_at)}`];
  return [h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, `${mark} `), text];
}

/** "may talk and listen", "may only listen, and start workflows" */
export function rights({ scope, workflows, eggs, notices }) {
  const may = scope === "talk" ? "may talk and listen" : "may only listen";
  const more = [workflows && "start workflows", eggs && "send and receive eggs", notices && "see what waits for you"].filter(Boolean);
  return more.length ? `${may}, and ${more.join(", ")}` : may;
}

/** The owner of a phone, as a sentence. */
export const whose = ({ kind }) =>
  kind === "mine" ? "It is yours: it sees your conversations and memory." : "It is a guest's: it has conversations and a memory of its own.";

/** "your own phone", "a guest's", and if it joins the session */
export const kindOf = ({ kind, invited }) =>
  [kind === "mine" ? "your own phone" : "a guest's", kind !== "mine" && invited && "joins the session"].filter(Boolean).join(", ");

/** "192.168.1.31" of what the daemon wrote down */
export const seenFrom = (row) => stripControl(row.seen_from);
