/** One row of the outbox with its state; it can be retried or dropped. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { outbox as waiting } from "../../lib/operations.js";
import { stripControl } from "../../lib/format.js";
import { troubleOf } from "../machines/machine-words.js";
import { machines } from "../machines/machines-state.js";
import { outbox } from "./outbox-state.js";
import { called, standing, timing, isWaiting } from "./call-words.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

/** The element of a row of `GET /outbox`; `update(row)` when there is a newer one. `brief`: no controls. */
export function outboxRow(row, { brief = false } = {}) {
  const state = h("p", {});
  const soft = h("p", { class: "soft" });
  const errorPlace = h("div", {});
  const actions = h("div", { class: "card-actions" });
  const what = h(
    "p",
    { class: "waiting-what" },
    h("bdi", {}, called(row)),
    h("span", { class: "soft" }, " to ", h("bdi", {}, stripControl(row.to))),
  );
  const element = h(
    "li",
    { class: brief ? "in-progress-row" : "card machine waiting-row", "data-id": row.id },
    h("div", { class: "card-words" }, what, state, soft),
    brief ? null : actions,
    errorPlace,
  );
  let drawn = "";
  const quoted = row.kind === "egg" ? called(row) : `"${stripControl(row.what)}"`;
  const to = stripControl(row.to);
  const { id } = row;
  const button = (label, kind, onclick) =>
    actionButton(label, onclick, kind, { "aria-label": `${label} ${called(row)}` });
  const retry = () =>
    attemptIn(errorPlace, async () => {
      await waiting.retry({ id });
      toast(`Tried now: ${quoted} to ${to}.`);
      outbox.touch();
    });
  const drop = () =>
    attemptIn(errorPlace, async () => {
      const begun = row.state === "accepted";
      await waiting.drop({ id });
      toast(begun ? `Dropped; ${to} may have begun it.` : `Dropped: ${quoted} to ${to}.`);
      outbox.touch();
    });
  const update = (newer) => {
    row = newer;
    const here = machines.peer(row.peer)?.presence === "here";
    fill(state, standing(row, here));
    fill(soft, details(row, here));
    if (drawn === String(isWaiting(row))) return;
    drawn = String(isWaiting(row));
    fill(actions, isWaiting(row) && [button("Retry", "secondary", retry), button("Drop", "quiet", drop)]);
  };
  update(row);
  return { element, update, close: () => undefined };
}

/** The line under a row: when it goes and ends, its thread, and the reason why it waits. */
function details(row, here) {
  const thread = `#/activity/thread/${encodeURIComponent(row.thread)}`;
  return [
    timing(row, here),
    row.thread && h("a", { href: thread }, `thread ${row.thread.slice(0, 4)}`),
    isWaiting(row) && troubleOf(row),
  ]
    .filter(Boolean)
    .flatMap((part, at) => (at ? [" · ", part] : [part]));
}
