/** One row of the outbox with its state; it can be retried or dropped. */

import { post, remove } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import { stripControl } from "../machines/labels.js";
import { machines } from "../machines/machines.js";
import { outbox } from "./outbox.js";
import { called, standing, timing, isWaiting } from "./labels.js";
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
  const quoted = () => (row.kind === "egg" ? called(row) : `"${stripControl(row.what)}"`);
  const path = () => `/outbox/${encodeURIComponent(row.id)}`;
  const retry = () =>
    attemptIn(errorPlace, async () => {
      await post(`${path()}/retry`);
      toast(`Tried now: ${quoted()} to ${stripControl(row.to)}.`);
      outbox.touch();
    });
  const drop = () =>
    attemptIn(errorPlace, async () => {
      const begun = row.state === "accepted";
      await remove(path());
      toast(
        begun
          ? `Dropped; ${stripControl(row.to)} may have begun it.`
          : `Dropped: ${quoted()} to ${stripControl(row.to)}.`,
      );
      outbox.touch();
    });
  const update = (newer) => {
    row = newer;
    const here = machines.peer(row.peer)?.presence === "here";
    fill(state, standing(row, here));
    fill(
      soft,
      [
        timing(row, here),
        row.thread &&
          h(
            "a",
            { href: `#/activity/thread/${encodeURIComponent(row.thread)}` },
            `thread ${row.thread.slice(0, 4)}`,
          ),
        isWaiting(row) &&
          stripControl(row.trouble) &&
          !/is (away|busy)\.$/.test(row.trouble) &&
          stripControl(row.trouble),
      ]
        .filter(Boolean)
        .flatMap((part, at) => (at ? [" · ", part] : [part])),
    );
    if (drawn === String(isWaiting(row))) return;
    drawn = String(isWaiting(row));
    fill(
      actions,
      isWaiting(row) && [
        h(
          "button",
          { type: "button", class: "secondary", "aria-label": `Retry ${called(row)}`, onclick: retry },
          "Retry",
        ),
        h(
          "button",
          { type: "button", class: "quiet", "aria-label": `Drop ${called(row)}`, onclick: drop },
          "Drop",
        ),
      ],
    );
  };
  update(row);
  return { element, update, close: () => undefined };
}
