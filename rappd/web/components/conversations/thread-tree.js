/** A thread as a tree: the steps that led to its answers inside one another, with the threads below it; live. */

import { h, visuallyHidden } from "../../lib/dom.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { clock, day, duration, moment } from "../../lib/format.js";
import { threads } from "../../lib/operations.js";
import { planView } from "../chat/tool-call.js";
import { staleList } from "../ui/stale-list.js";
import { speakerName } from "./speaker-name.js";

const SIGNS = { done: ["good", "✓", "done"], failed: ["bad", "✗", "failed"], open: ["warn", "…", "no answer yet"] };

/** Shows the thread `id` in `place`. `close()` when done. */
export function threadTree(place, id) {
  const closed = new Set(); // steps that the reader folded: they stay so when something comes
  let belongs = () => true;
  const list = staleList(place, {
    name: `tree of ${id}`,
    load: async () => (await threads.tree({ thread: id })).tree,
    draw: ({ thread, threads: all, steps }) => {
      belongs = knownBy(all, steps);
      return [
        h("h2", { class: "thread-title" }, thread.title || `thread ${id.slice(0, 4)}`),
        h("p", { class: "soft" }, all.length > 1 ? `${all.length} threads, one below the other.` : "One thread."),
        steps.length
          ? h("ol", { class: "thread-steps", role: "list" }, steps.map((step) => stepView(step, thread.path, closed)))
          : h("p", { class: "plain" }, "Nothing was said here yet."),
      ];
    },
  });
  const arrived = ({ detail }) => belongs(detail) && list.refresh();
  daemonEvents.addEventListener("event", arrived);
  return {
    close() {
      daemonEvents.removeEventListener("event", arrived);
      list.close();
    },
  };
}

/** Tells whether a record is of these threads, or began on behalf of one of their steps. */
function knownBy(all, steps) {
  const ids = new Set(all.map(({ id }) => id));
  const take = (some) => some.forEach((one) => (ids.add(one.id), take(one.steps)));
  take(steps);
  return ({ thread, parent }) => ids.has(thread) || ids.has(parent);
}

function stepView(step, above, closed) {
  const inside = [
    step.steps.length > 0 &&
      h("ol", { class: "thread-steps", role: "list" }, step.steps.map((one) => stepView(one, step.path, closed))),
    step.plan && planView({ by: step.name, todos: step.plan }),
    step.answered && step.kind !== "note" && h("p", { class: "step-answer" }, step.answered),
  ].filter(Boolean);
  const moved = step.path.join("\n") !== above.join("\n");
  const head = [sign(step), h("span", { class: "step-words" }, words(step)), took(step)];
  return h(
    "li",
    { class: "thread-step", "data-kind": step.kind },
    moved && h("p", { class: "soft step-path" }, path(step.path)),
    inside.length === 0 ? h("div", { class: "step-head" }, head) : folding(step, head, inside, closed),
  );
}

function folding(step, head, inside, closed) {
  const key = `${step.thread} ${step.kind} ${step.id}`;
  const element = h(
    "details",
    { open: !closed.has(key) },
    h("summary", { class: "step-head", id: `step ${key}`.replaceAll(" ", "-") }, head),
    h("div", { class: "step-inside" }, inside),
  );
  element.addEventListener("toggle", () => (element.open ? closed.delete(key) : closed.add(key)));
  return element;
}

function sign({ kind, state }) {
  if (kind === "round" || kind === "note") return h("span", { class: "sign soft", "aria-hidden": "true" }, "·");
  const [look, shown, said] = SIGNS[state] ?? SIGNS.open;
  return h("span", { class: `sign ${look}` }, h("span", { "aria-hidden": "true" }, shown), visuallyHidden(`${said} `));
}

function words({ kind, name, asked, from, to }) {
  if (kind === "round") return name;
  if (kind === "note") return asked;
  if (kind === "call") return [h("strong", {}, name), asked && ` ${asked}`];
  return [asked, h("span", { class: "soft" }, ` ${speakerName(from)} asked ${speakerName(to)}`)];
}

function took({ at, seconds, kind }) {
  const when = { datetime: moment(at).toISOString(), title: `${day(at)}, ${clock(at)}` };
  const text = seconds === null ? clock(at) : duration(seconds);
  return h("time", { class: "soft step-time", ...when }, kind === "note" ? clock(at) : text);
}

/** A path for people: the names below its session. Never a key, a name may hold anything. */
const path = ([root, ...below]) => ["Thread ", [root.slice(0, 8), ...below].join(" › ")];
