/** A thread of the event log as a conversation of all its speakers; read only. */

import { callView } from "../chat/tool-call.js";
import { fill, h } from "../../lib/dom.js";
import { threads } from "../../lib/operations.js";
import { NOBODY_SPECIAL, speakerName } from "./speaker-name.js";
import { staleList } from "../ui/stale-list.js";
import { attemptIn } from "../ui/problem.js";
import { turnOf } from "./conversations-state.js";
import { turnView } from "../chat/turn-view.js";
import { clock, day } from "../../lib/format.js";

/** Shows the thread `id` in `place`. `close()` when done. */
export function threadView(place, id) {
  return staleList(place, {
    name: `turns of ${id}`,
    load: () => threads.turns({ thread: id }),
    draw: ({ thread = {}, turns = [], before = null }) => {
      const problem = h("div", {});
      const list = h("ol", { class: "turns recorded" }, items(turns, thread.id));
      const earlier = h("button", { type: "button", class: "quiet small earlier", hidden: !before }, "Earlier");
      let from = before;
      earlier.addEventListener("click", () =>
        attemptIn(problem, async () => {
          const found = await threads.turns({ thread: id, before: from });
          list.prepend(...items(found.turns, thread.id));
          from = found.before;
          earlier.hidden = !from;
        }),
      );
      const mine = thread.caller === NOBODY_SPECIAL && thread.title;
      return [
        thread.title && h("h2", { class: "thread-title" }, thread.title),
        mine && h("p", {}, h("a", { href: `#/chat/conversation/${thread.id}` }, "Go on with this conversation")),
        turns.length === 0 && h("p", { class: "plain" }, "Nobody said a sentence here."),
        earlier,
        problem,
        list,
      ];
    },
  });
}

function items(turns, thread) {
  return turns.map((row) => (row.kind === "turn" ? sentence(row, thread) : other(row, thread)));
}

function sentence(row, thread) {
  const turn = turnOf(row, thread);
  const { element } = turnView(turn, { name: speakerName(row.to), you: row.by || speakerName(row.from) });
  element.prepend(moment(row));
  return element;
}

function other(row, thread) {
  const said = h("div", { class: "said" });
  if (row.kind === "note") fill(said, h("p", { class: "soft" }, row.user));
  for (const call of row.calls) {
    const view = callView(call);
    view.update(thread);
    said.append(view.element);
  }
  return h(
    "li",
    { class: "turn" },
    moment(row),
    h("div", { class: "line" }, h("h2", { class: "who" }, row.by || speakerName(row.from)), said),
  );
}

const moment = (row) => h("p", { class: "soft turn-moment" }, `${day(row.at)}, ${clock(row.at)}`);
