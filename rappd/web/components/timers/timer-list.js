/** Reminders and what is asked at set times: when each comes, and the ways to pause, move, run and cancel it. */

import { daemonEvents } from "../../lib/event-stream.js";
import { h, listen } from "../../lib/dom.js";
import { KeptState } from "../../lib/kept-state.js";
import { timers } from "../../lib/operations.js";
import { field, formDialog } from "../ui/form-dialog.js";
import { keyedList } from "../ui/keyed-list.js";
import { menuButton } from "../ui/menu.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

const state = Object.assign(new KeptState(), { rows: [] });
const touch = async () => state.keep({ rows: (await timers.list()).timers });

/** Fills `place`, which stays empty while there are none; `close()` when done. */
export function timerList(place) {
  const list = keyedList("ul", "cards waiting-cards", versionOf, card);
  const problem = h("div", {});
  const part = h("section", { class: "waiting-part timers-part", "aria-label": "Reminders", hidden: true }, h("h2", {}, "Reminders"), list.element);
  place.replaceChildren(part, problem);
  const look = () => attemptIn(problem, touch);
  const draw = () => {
    list.show(state.rows);
    part.hidden = state.rows.length === 0;
  };
  const ends = [listen("change", [state], draw), listen("notice", [daemonEvents], look), list.close];
  draw();
  look();
  return { close: () => ends.forEach((end) => end()) };
}

/** A row whose text changed is drawn anew. */
const versionOf = ({ id, when, paused, what }) => [id, when, paused, what].join("\n");

function card(row) {
  const problem = h("div", {});
  const attempt = (work) => attemptIn(problem, work).then(touch);
  const set = row.paused ? ["Resume", timers.resume] : ["Pause", timers.pause];
  const controls = row.change
    ? h("a", { class: "button quiet", href: "#/machines/neighborhood" }, "See snapshots")
    : [
        h("button", { type: "button", class: "quiet", "aria-label": `${set[0]}: ${row.what}`, onclick: () => attempt(() => set[1]({ timer: row.id })) }, set[0]),
        menuButton("More", `More for ${row.what}`, () => [
          { label: "Change the time…", run: () => move(row) },
          { label: "Do it now", run: () => attempt(() => timers.run({ timer: row.id })) },
          null,
          { label: "Cancel it…", run: () => cancel(row) },
        ]),
      ];
  const element = h(
    "li",
    { class: "card agent waiting-card" },
    h(
      "div",
      { class: "card-words" },
      h("h3", {}, row.what),
      h("p", { class: "soft" }, row.paused && h("strong", {}, "Paused · "), row.when, row.by !== "you" && !row.change && ` · set by ${row.by}`),
      problem,
    ),
    h("div", { class: "card-actions" }, controls),
  );
  return { element, update: () => undefined, close: () => undefined };
}

function move({ id, what }) {
  const to = field("When", { placeholder: "tomorrow at 9, or just: ten" });
  formDialog({
    title: `Another time for “${what}”`,
    verb: "Change",
    fields: [to],
    run: async () => {
      const { timer } = await timers.move({ timer: id, to: to.input.value });
      await touch();
      toast(`${timer.what}: ${timer.when}`);
    },
  });
}

function cancel({ id, what, rule }) {
  formDialog({
    title: `Cancel “${what}”?`,
    verb: "Cancel it",
    fields: [],
    before: h("p", {}, rule ? "It does not come any more." : "It does not come then."),
    run: async () => {
      await timers.cancel({ timer: id });
      await touch();
      toast(`Cancelled: ${what}`);
    },
  });
}
