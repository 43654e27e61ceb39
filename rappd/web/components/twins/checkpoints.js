/** A twin as it was at moments: listed, made, and gone back to once one has seen what would change. */

import { staleList } from "../ui/stale-list.js";
import { bytes, clock, count, onDay, joinNames } from "../../lib/format.js";
import { actionButton, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { attemptIn } from "../ui/problem.js";
import { openDialog } from "../ui/dialog.js";
import { toast } from "../ui/toast.js";
import { twins } from "./twins-state.js";

const SHOWN = 5;

/** The part of a twin's page that lists them. `changed()` is called when the twin went back; `close()` when done. */
export function checkpoints(key, name, changed) {
  const place = h("div", {});
  const errorPlace = h("div", {});
  const list = staleList(place, {
    name: `checkpoints ${key}`,
    load: async () => (await operations.checkpoints.list({ twin: key })).checkpoints ?? [],
    draw: (found) =>
      found.length
        ? h(
            "ul",
            { class: "rows", role: "list" },
            [...found].reverse().map((one) => row(one, found)),
          )
        : h("p", { class: "soft" }, "None yet. A checkpoint keeps a twin as it is, to go back to."),
  });

  const row = (one, every) =>
    h(
      "li",
      { class: "line-row" },
      h(
        "div",
        {},
        h("p", {}, words(one, every)),
        h(
          "p",
          { class: "soft" },
          [one.files !== null && count(one.files, "file"), bytes(one.size)].filter(Boolean).join(", "),
        ),
      ),
      actionButton(
        "Go back",
        () => attemptIn(errorPlace, () => look(one)),
        "quiet",
        { "aria-label": `Go back to ${when(one)}` },
      ),
    );

  const make = () =>
    attemptIn(errorPlace, async () => {
      toast((await operations.checkpoints.make({ twin: key })).message);
      list.refresh();
    });

  async function look(one) {
    const would = await operations.checkpoints.rollback({ twin: key, checkpoint: one.id });
    if (!would.restored.length && !would.removed.length) {
      toast(`${name} is as it was then already.`);
      return;
    }
    openBack(one, would);
  }

  function openBack(one, { restored, removed }) {
    const problem = h("div", {});
    openDialog({
      title: `Bring ${name} back to ${when(one)}?`,
      build: (close) => {
        const go = () => attemptIn(problem, () => back(one)).then((done) => done && close());
        return h(
          "div",
          { class: "dialog-body" },
          restored.length > 0 &&
            h("p", {}, `${count(restored.length, "file")} as it was then: ${joinNames(restored, SHOWN)}`),
          removed.length > 0 &&
            h("p", {}, `${count(removed.length, "file")} put aside: ${joinNames(removed, SHOWN)}`),
          h(
            "p",
            { class: "soft" },
            "What it is now becomes a checkpoint first, so this can be undone. Its conversations go on; it may not remember them.",
          ),
          problem,
          h(
            "div",
            { class: "dialog-actions" },
            actionButton("Leave it", close),
            actionButton("Go back", go),
          ),
        );
      },
    });
  }

  async function back(one) {
    const done = await operations.checkpoints.rollback({ twin: key, checkpoint: one.id, confirm: true });
    toast(
      `${name} is as it was ${when(one)}: ${count(done.restored.length, "file")} restored, ${done.removed.length} removed.`,
    );
    twins.touch();
    list.refresh();
    changed();
  }

  return {
    element: h("div", {}, errorPlace, place),
    control: actionButton("Save a checkpoint", make, "quiet"),
    close: list.close,
  };
}

const when = ({ at }) => `${onDay(at)}, ${clock(at)}`;

function words(one, every) {
  const to = every.find(({ id }) => one.before && id === one.before);
  return `${when(one)}${to ? `: before it went back to ${when(to)}` : one.note && `: ${one.note}`}`;
}
