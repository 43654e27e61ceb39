/** Labels of snapshots and of the machines in them. */

import { bytes, clock, count, joinNames, onDay } from "../../lib/format.js";
import { h } from "../../lib/dom.js";
import { stripControl } from "../machines/labels.js";

const WAYS = { ssh: "SSH", folder: "folder", rappd: "paired", github: "GitHub" };

/** A mark that the words beside it say again: "good", "warn", "bad" or "soft". */
export const sign = (mark, kind) => h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, `${mark} `);

/** How a snapshot reads a machine: "SSH", "folder"; "no way" when it cannot. */
export const wayOf = ({ way, paired }) => WAYS[way] ?? (paired ? "paired" : "no way");

/** "today 14:02", "20 Nov 14:02" */
export const when = (at) => `${onDay(at)} ${clock(at)}`;

/** Drill state of a snapshot: `[mark, kind, words]`. */
export function drillState({ there, drill, restorable, missing }) {
  if (!there) return ["✗", "bad", "its file is gone"];
  if (!drill) return ["!", "warn", "not tried yet"];
  if (!restorable) return ["✗", "bad", `cannot be restored: ${stripControl(drill.problem)}`];
  const lacks = missing.length ? `, without ${joinNames(missing.map(stripControl))}` : "";
  return [missing.length ? "!" : "✓", missing.length ? "warn" : "good", `restorable, tried ${when(drill.at)}${lacks}`];
}

/** "2 machines, 6 twins, 412 MB" */
export const sizes = ({ machines, twins, size }) =>
  `${count(machines, "machine")}, ${count(twins, "twin")}, ${bytes(size)}`;
