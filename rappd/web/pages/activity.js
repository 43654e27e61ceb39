/** Activity: calls as they happen, threads, and the log. */

import { download } from "../lib/api.js";
import { logView } from "../components/log/log-view.js";
import { staleList } from "../components/ui/stale-list.js";
import { clock, day, moment, timeOrDay } from "../lib/format.js";
import { daemon } from "../lib/daemon-state.js";
import { actionButton, fill, h, icon, listen, visuallyHidden } from "../lib/dom.js";
import { speakerName } from "../components/conversations/speaker-name.js";
import { threadTree } from "../components/conversations/thread-tree.js";
import { threadView } from "../components/conversations/thread-view.js";
import { daemonEvents } from "../lib/event-stream.js";
import * as operations from "../lib/operations.js";
import { operatorNotice } from "../components/layout/operator-notice.js";
import { viewLinks } from "../components/layout/view-links.js";
import { organismView } from "../components/organism/organism-view.js";
import { callsInProgress } from "../components/outbox/calls-in-progress.js";
import { attemptIn } from "../components/ui/problem.js";

const VERBS = { HELP: "asked", DONE: "answered", ERROR: "refused", HELLO: "greeted" };
const VIEWS = [
  ["", "Calls"],
  ["threads", "Threads"],
  ["organism", "Picture"],
  ["log", "Log"],
];
const FORMS = [
  ["", "Conversation"],
  ["tree", "Tree"],
  ["records", "Records"],
];
const KEEP_EVENTS = 500;

export function mount(main) {
  const body = h("div", {});
  const views = h("nav", { class: "views", "aria-label": "Activity" });
  const heading = h("h1", { tabindex: -1 }, "Activity");
  fill(
    main,
    h(
      "section",
      { class: "page" },
      h("div", { class: "column" }, h("header", { class: "head" }, heading, views), body),
    ),
  );
  let open = null;
  let rest = null;

  const draw = () => {
    open?.close();
    open = null;
    const [view = "", id] = rest ?? [];
    fill(views, viewLinks("activity", VIEWS, view === "thread" ? "threads" : view));
    if (!daemon.operator) return fill(body, operatorNotice("see what was said and done"));
    if (view === "threads") open = threads(body);
    else if (view === "thread" && id) open = thread(body, id, rest[2] ?? "");
    else if (view === "organism") open = organismView(body);
    else if (view === "log") open = logView(body);
    else open = calls(body);
  };
  daemon.addEventListener("operator", draw);
  return {
    go(now) {
      if (rest && rest.join() === now.join()) return;
      rest = now;
      draw();
    },
    close() {
      open?.close();
      daemon.removeEventListener("operator", draw);
    },
  };
}

function calls(body) {
  const now = h("div", {});
  const place = h("div", {});
  fill(body, now, place);
  const going = callsInProgress(now);
  const list = staleList(place, {
    name: "activity",
    load: async () => {
      const { events, security = [] } = await operations.threads.activity();
      return [...events, ...security];
    },
    draw: (loaded) => {
      const events = loaded
        .toSorted((one, other) => moment(other.at) - moment(one.at) || (other.seq ?? 0) - (one.seq ?? 0))
        .slice(0, KEEP_EVENTS);
      if (!events.length)
        return h("p", { class: "plain" }, "Nothing has happened yet. What your agents do appears here.");
      return byDay(events);
    },
  });
  const arrived = () => list.refresh();
  const heard = ["event", "security"].map((type) => listen(type, [daemonEvents], arrived));
  return {
    close() {
      for (const end of heard) end();
      going.close();
      list.close();
    },
  };
}

function byDay(events) {
  const days = new Map();
  for (const event of events) {
    const name = day(event.at);
    days.set(name, [...(days.get(name) ?? []), event]);
  }
  return [...days].map(([name, some]) => [
    h("h2", {}, name),
    h(
      "ol",
      { class: "rows", role: "list" },
      some.map((event) => (event.text ? securityRow(event) : eventRow(event, true))),
    ),
  ]);
}

/** The row of a refusal for security: the log has it, too. */
function securityRow({ at, text }) {
  return h(
    "li",
    { class: "row" },
    h("time", { datetime: moment(at).toISOString() }, clock(at)),
    h("span", { class: "sign warn" }, "!", visuallyHidden(" refused")),
    h("div", { class: "row-words" }, text, h("p", { class: "soft" }, "Refused for security")),
  );
}

function eventRow(event, linked) {
  const said = event.title || VERBS[event.verb] || event.verb.toLowerCase();
  return h(
    "li",
    { class: "row" },
    h("time", { datetime: moment(event.at).toISOString() }, clock(event.at)),
    event.ok === false
      ? h("span", { class: "sign bad" }, "✗", visuallyHidden(" failed"))
      : h("span", { class: "sign good" }, "✓", visuallyHidden(" done")),
    h(
      "div",
      { class: "row-words" },
      linked && event.thread
        ? h("a", { href: `#/activity/thread/${encodeURIComponent(event.thread)}` }, said)
        : said,
      h(
        "p",
        { class: "soft" },
        `${speakerName(event.from)} `,
        h("span", { "aria-hidden": "true" }, "→"),
        visuallyHidden("to"),
        ` ${speakerName(event.to)}`,
        event.title && `, ${VERBS[event.verb] ?? event.verb.toLowerCase()}`,
      ),
    ),
  );
}

function threads(body) {
  return staleList(body, {
    name: "threads",
    load: async () => (await operations.threads.list()).threads,
    draw: (all) =>
      all.length
        ? h(
            "ol",
            { class: "rows", role: "list" },
            all.map(({ id, title, updated, count }) =>
              h(
                "li",
                { class: "row" },
                h("time", { datetime: moment(updated).toISOString() }, timeOrDay(updated)),
                h(
                  "div",
                  { class: "row-words" },
                  h("a", { href: `#/activity/thread/${encodeURIComponent(id)}` }, title || id.slice(0, 8)),
                  h(
                    "p",
                    { class: "soft" },
                    `thread ${id.slice(0, 4)}, ${count} ${count === 1 ? "entry" : "entries"}`,
                  ),
                ),
              ),
            ),
          )
        : h("p", { class: "plain" }, "No threads yet. Each conversation becomes one."),
  });
}

function thread(body, id, form) {
  const place = h("div", {});
  const errorPlace = h("div", {});
  const save = (format, ending) => () =>
    attemptIn(errorPlace, () =>
      download(
        `/threads/${encodeURIComponent(id)}/export?format=${format}`,
        `thread-${id.slice(0, 8)}.${ending}`,
      ),
    );
  fill(
    body,
    h(
      "div",
      { class: "thread-head" },
      h("a", { class: "button quiet", href: "#/activity/threads" }, icon("chevron", "icon back"), "Threads"),
      h("p", { class: "soft" }, `thread ${id.slice(0, 4)}`),
      h("nav", { class: "views", "aria-label": "This thread" }, viewLinks(`activity/thread/${encodeURIComponent(id)}`, FORMS, form)),
      actionButton("Export Markdown", save("markdown", "md"), "quiet"),
      actionButton("Export JSONL", save("jsonl", "jsonl"), "quiet"),
    ),
    errorPlace,
    place,
  );
  if (form === "tree") return threadTree(place, id);
  if (form !== "records") return threadView(place, id);
  return staleList(place, {
    name: `thread ${id}`,
    load: () => operations.threads.show({ thread: id }),
    draw: ({ events }) =>
      h("ol", { class: "rows", role: "list" }, events.map((event) => eventRow(event, false))),
  });
}
