/** Labels of outbox rows. */

import { h } from "../../lib/dom.js";
import { stripControl } from "../../lib/format.js";
import { span, until } from "../machines/machine-words.js";

const WAITING = ["queued", "delivered", "accepted"];

/** "read the rain gauge" of a call, "Egg garden.egg" of an egg */
export const called = (row) =>
  row.kind === "egg" ? `Egg ${stripControl(row.what)}` : stripControl(row.what) || "a call";

/** True while a row waits. */
export const isWaiting = ({ state }) => WAITING.includes(state);

/** State of a row, as nodes; `here`: its machine is reachable. */
export function standing(row, here) {
  const words = row.kind === "egg" ? { ...sayings, ...ofEggs } : sayings;
  const [kind, mark, text] = words[row.state]?.(row, here) ?? ["soft", "·", stripControl(row.state)];
  return [h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, `${mark} `), text];
}

/** "3 tries · goes when shed is back · ends in 22 h" */
export function timing(row, here, now = Date.now() / 1000) {
  if (!isWaiting(row)) return "";
  return [
    row.tries > 0 && `${row.tries} ${row.tries === 1 ? "try" : "tries"}`,
    next(row, here, now),
    row.expires > now ? `ends in ${span(row.expires - now)}` : "ends now",
  ]
    .filter(Boolean)
    .join(" · ");
}

const sayings = {
  queued: (row, here) =>
    here
      ? ["warn", "!", "queued"]
      : ["warn", "!", [bdi(row), ` is away; your call waits ${until(row.expires)}`]],
  delivered: () => ["soft", "○", "on its way"],
  accepted: (row) => ["soft", "○", [bdi(row), " works on it"]],
  done: () => ["good", "✓", "done"],
  failed: (row) => ["bad", "✗", row.trouble ? `failed: ${stripControl(row.trouble)}` : "failed"],
  expired: () => ["bad", "✗", "ran out of time"],
  dropped: () => ["soft", "·", "dropped"],
};

const ofEggs = {
  queued: (row, here) =>
    here
      ? ["warn", "!", "waiting"]
      : ["warn", "!", ["waiting: ", bdi(row), ` is away; it keeps ${until(row.expires)}`]],
  done: (row) => ["good", "✓", ["delivered; it waits on ", bdi(row), " to be hatched"]],
};

function next(row, here, now) {
  if (row.state === "accepted") return "its answer comes by itself";
  if (!here) return "goes by itself";
  return (row.next ?? 0) <= now + 1 ? "goes now" : `next try in ${span(row.next - now)}`;
}

const bdi = (row) => h("bdi", {}, stripControl(row.to));
