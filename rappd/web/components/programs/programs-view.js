/** Programs of others that ask this machine: who connected, what each asked and was refused, and what they may use. */

import { daemonEvents } from "../../lib/event-stream.js";
import { fill, h } from "../../lib/dom.js";
import { ago, count, timeOrDay } from "../../lib/format.js";
import * as operations from "../../lib/operations.js";
import { settingsBelow } from "../settings/setting-rows.js";
import { attemptIn } from "../ui/problem.js";
import { staleList } from "../ui/stale-list.js";

const SOON_MS = 500;

/** The section's content; `reveal(name)` shows one of its settings, `close()` when done. */
export function programsView() {
  const place = h("div", {});
  const opened = new Set(); // of what each asked, also after a redrawing
  const list = staleList(place, {
    name: "programs",
    load: () => operations.programs.list(),
    draw: ({ programs = [] }) =>
      programs.length
        ? h("ul", { class: "rows", role: "list", "aria-label": "Programs" }, programs.map((row) => program(row, opened)))
        : h("p", { class: "soft" }, "No program asked this machine yet. What to paste into one: ", manual(), "."),
  });
  const may = settingsBelow("programs.");
  const rules = h(
    "details",
    { class: "source" },
    h("summary", {}, "What programs may use"),
    h("div", { class: "source-inside" }, may.element),
  );
  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(list.refresh, SOON_MS);
  };
  daemonEvents.addEventListener("event", soon);
  return {
    element: h("div", {}, place, rules),
    reveal(name) {
      rules.open = true;
      const show = (tries) => {
        const input = place.isConnected && rules.querySelector(`#${CSS.escape(`setting-${name}`)}`);
        if (input) (input.scrollIntoView({ block: "center" }), input.focus());
        else if (tries) requestAnimationFrame(() => show(tries - 1));
      };
      show(120);
    },
    close() {
      clearTimeout(timer);
      daemonEvents.removeEventListener("event", soon);
      list.close();
      may.close();
    },
  };
}

const manual = () => h("code", {}, "docs/clients.md");

function program(row, opened) {
  const key = [row.protocol, row.by, row.name].join("\n");
  const error = row.error && h("p", { class: "warn" }, `Last refused ${ago(row.error_at)}: ${row.error}`);
  return h(
    "li",
    { class: "program-row" },
    h("strong", {}, nameOf(row)),
    h("span", { class: "soft" }, ` over ${row.title}, ${ago(row.last)}`),
    h("p", { class: "soft" }, [came(row), allowed(row)].filter(Boolean).join(". ")),
    error,
    row.where === "refused" ? null : asked(row, key, opened),
  );
}

function nameOf({ where, name, by }) {
  if (where === "refused") return "Programs that were not let in";
  const own = name || "A program";
  return by ? `${own} (${by})` : own;
}

function came({ turns, tokens, cost_usd: cost }) {
  if (!turns) return "No answer yet";
  const spent = [tokens && `${tokens.toLocaleString()} tokens`, cost && `$${cost.toFixed(4)}`].filter(Boolean);
  return [count(turns, "answer"), ...spent].join(", ");
}

function allowed({ where, may }) {
  if (where === "here") return "On this computer: everyday agents, unless you say below which";
  return may ? `May ${may.join(", ")}` : "";
}

/** The conversations of a program, each as the record has it. */
function asked(row, key, opened) {
  const problem = h("div", {});
  const found = h("div", {});
  const load = () =>
    attemptIn(problem, async () => {
      const { conversations } = await operations.programs.conversations({ protocol: row.protocol });
      const own = conversations.filter(({ by }) => by === row.by);
      fill(
        found,
        own.length
          ? h("ul", { class: "conversation-rows", role: "list" }, own.map(conversation))
          : h("p", { class: "soft" }, "Nothing that is still recorded."),
      );
    });
  const element = h("details", { class: "source" }, h("summary", {}, "What was asked"), problem, found);
  element.addEventListener("toggle", () => {
    if (!element.open) return void opened.delete(key);
    opened.add(key);
    load();
  });
  element.open = opened.has(key);
  return element;
}

const conversation = ({ id, title, updated }) =>
  h(
    "li",
    { class: "conversation" },
    h(
      "a",
      { class: "conversation-link", href: `#/activity/thread/${encodeURIComponent(id)}` },
      h("span", { class: "conversation-title" }, title),
      h("span", { class: "soft" }, timeOrDay(updated)),
    ),
  );
