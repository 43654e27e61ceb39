/** Labels of phones. The name is the phone's own word for itself: it is tamed as foreign text is. */

import { h } from "../../lib/dom.js";
import { ago } from "../../lib/format.js";
import { nameOf, stripControl } from "../machines/labels.js";

export { nameOf, named } from "../machines/labels.js";

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

/** "shared memory", "memory of 3f9c…" */
export const memoryOf = ({ user }) =>
  !user || user === "shared" ? "shared memory" : `memory of ${nameOf({ name: user })}`;

/** "192.168.1.31" of what the daemon wrote down */
export const seenFrom = (row) => stripControl(row.seen_from);
