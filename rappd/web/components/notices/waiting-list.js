/** Notices above Activity's list: each says what happened and what to do, until it is dismissed. */

import { timeOrDay } from "../../lib/format.js";
import { h } from "../../lib/dom.js";
import { listen } from "../../lib/listen.js";
import { attemptIn } from "../ui/problem.js";
import { notices } from "./notices-state.js";

/** Places where the page does what a notice asks for. */
const PLACES = {
  approval: ["#/agents", "Read and approve"],
  pairing: ["#/machines", "Compare words"],
  schedule: ["#/machines/neighborhood", "See snapshots"],
};

/** Fills `place`; without news only the switch for this browser's own notices is there. `close()` when done. */
export function waitingList(place) {
  const list = h("ul", { class: "rows", role: "list" });
  const all = h("button", { type: "button", class: "quiet small", onclick: () => dismiss() }, "Dismiss all");
  const tell = h("button", { type: "button", class: "quiet small", onclick: () => notices.want(!notices.wanted) });
  const problem = h("div", {});
  const part = h(
    "section",
    { class: "in-progress-part", "aria-label": "Waiting for you" },
    h("h2", {}, "Waiting for you"),
    list,
    problem,
    h("p", {}, all),
  );
  place.replaceChildren(part, h("p", { class: "waiting-actions" }, tell));
  const dismiss = (key) => attemptIn(problem, () => notices.dismiss(key));
  const draw = () => {
    list.replaceChildren(...notices.rows.map((row) => noticeRow(row, dismiss)));
    all.hidden = notices.rows.length < 2;
    tell.hidden = !notices.possible;
    tell.textContent = notices.wanted ? "No notices by this browser" : "Let this browser tell me what happens";
    part.hidden = notices.rows.length === 0;
  };
  const end = listen("change", [notices], draw);
  draw();
  notices.touch();
  return { close: end };
}

function noticeRow({ key, kind, what, do: todo, at }, dismiss) {
  const [href, label] = PLACES[kind] ?? [];
  return h(
    "li",
    { class: "waiting-notice" },
    h("div", { class: "row-words" }, h("p", {}, what), h("p", { class: "soft" }, timeOrDay(new Date(at * 1000)))),
    href ? h("a", { class: "button quiet small", href }, label) : todo && h("code", {}, todo),
    h("button", { type: "button", class: "quiet small", "aria-label": `Dismiss: ${what}`, onclick: () => dismiss(key) }, "Dismiss"),
  );
}
