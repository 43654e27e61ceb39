/** Labels of snapshots and of the machines in them. */

import { bytes, clock, count, joinNames, onDay, stripControl } from "../../lib/format.js";
import { h } from "../../lib/dom.js";

const WAYS = { ssh: "SSH", folder: "folder", rappd: "paired", github: "GitHub" };

/** A mark that the words beside it say again: "good", "warn", "bad" or "soft". */
export const sign = (mark, kind) => h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, `${mark} `);

/** The way by which a snapshot reads a machine: "SSH", "folder"; "no way" when it cannot. */
export const wayOf = ({ way, paired }) => WAYS[way] ?? (paired ? "paired" : "no way");

/** "today 14:02", "20 Nov 14:02" */
export const when = (at) => `${onDay(at)} ${clock(at)}`;

/** Drill state of a snapshot: `[mark, kind, words]`. */
export function drillState({ there, drill, restorable, missing, left_behind: left = [] }) {
  if (!there) return ["✗", "bad", "its file is gone"];
  if (!drill) return ["!", "warn", "not tried yet"];
  if (!restorable) return ["✗", "bad", `cannot be restored: ${stripControl(drill.problem)}`];
  const absent = [...missing, ...left];
  const lacks = absent.length ? `, without ${joinNames(absent.map(stripControl))}` : "";
  return [absent.length ? "!" : "✓", absent.length ? "warn" : "good", `restorable, tried ${when(drill.at)}${lacks}`];
}

/** The newest restorable snapshot with all of a machine: `[mark, kind, words]`. `snapshots`: the newest first. */
export function backup(name, snapshots) {
  const good = snapshots.filter(({ there, restorable, holds = [] }) => there && restorable && holds.includes(name));
  const whole = good.find(({ missing, left_behind: left = [] }) => ![...missing, ...left].some((lost) => lost === name || lost.startsWith(`${name}/`)));
  if (whole) return ["✓", "good", `backed up ${when(whole.taken_at)}`];
  return good.length ? ["!", "warn", "only partly backed up"] : ["!", "warn", "not backed up"];
}

/** "3 machines, 6 twins, 412 MB"; "2 of 3 machines, …" when one is missing */
export function sizes({ machines, twins, size, missing }) {
  const all = machines + missing.filter((path) => !path.includes("/")).length;
  return `${all > machines ? `${machines} of ` : ""}${count(all, "machine")}, ${count(twins, "twin")}, ${bytes(size)}`;
}

/** Lines on snapshots that are taken by themselves, and since when that fails. */
export function scheduleLines(found) {
  if (!found) return [];
  const zone = found.zone && ` (${stripControl(found.zone)})`;
  const rule = `Taken by itself: ${stripControl(found.rule)}${zone}, next ${when(found.next)}; the last ${count(found.keep, "whole one")} stay.`;
  const failing = found.outcome && h("p", {}, sign("✗", "bad"), `Fails since ${when(found.failed_since)}: ${stripControl(found.outcome)}`);
  return [h("p", { class: "soft" }, rule), failing];
}
