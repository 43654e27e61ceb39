/** The daemon's log as it is written: followed, by level, searched. For operators. */

import { saveAs } from "../../lib/api.js";
import { settings } from "../../lib/operations.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { attemptIn } from "../ui/problem.js";

const LOOK_MS = 1500;
const FIRST_LINES = 1000;
const MOST_RECORDS = 3000;
const NEAR_PX = 40;
const RECORD = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) (\w+)\s+([\w.]+): (.*)$/s;
const LEVELS = { DEBUG: 0, INFO: 0, WARNING: 1, ERROR: 2, CRITICAL: 2 };
const CHOICES = { 0: "Everything", 1: "Warnings and errors", 2: "Errors only" };
const SIGNS = { 1: ["warn", "!"], 2: ["bad", "✗"] };

/** Fills `body`. `close()` when done. */
export function logView(body) {
  const level = h(
    "select",
    { id: "log-level" },
    Object.entries(CHOICES).map(([value, text]) => h("option", { value }, text)),
  );
  const search = h("input", { type: "search", id: "log-search", placeholder: "Search…", spellcheck: "false" });
  const follow = h("input", { type: "checkbox", role: "switch", checked: true });
  const lines = h("div", { class: "log", tabindex: 0, role: "region", "aria-label": "Log" });
  const shown = h("p", { class: "soft", role: "status" });
  const errorPlace = h("div", {});
  const records = []; // {text, level, element}
  let mark = "";
  let timer = 0;
  let closed = false;

  const fits = (record) =>
    record.level >= Number(level.value) && record.text.toLowerCase().includes(search.value.trim().toLowerCase());
  const tell = () => {
    const seen = records.filter(({ element }) => !element.hidden).length;
    const all = count(records.length, "entry", "entries");
    fill(shown, seen === records.length ? all : `${seen} of ${all}`);
  };
  const sift = () => {
    for (const record of records) record.element.hidden = !fits(record);
    tell();
    toEnd();
  };
  const toEnd = () => {
    if (follow.checked) lines.scrollTop = lines.scrollHeight;
  };
  const take = (fresh) => {
    const touched = new Set();
    for (const line of fresh) {
      const last = records.at(-1);
      if (last && !RECORD.test(line)) last.text += `\n${line.trimEnd()}`;
      else records.push({ text: line, level: LEVELS[RECORD.exec(line)?.[3]] ?? 0, element: null });
      touched.add(records.at(-1));
    }
    for (const record of touched) {
      const element = view(record);
      element.hidden = !fits(record);
      if (record.element) record.element.replaceWith(element);
      else lines.append(element);
      record.element = element;
    }
    for (const record of records.splice(0, Math.max(0, records.length - MOST_RECORDS))) record.element.remove();
    tell();
    toEnd();
  };
  const look = async () => {
    clearTimeout(timer);
    if (!document.hidden && (follow.checked || !mark)) {
      await attemptIn(errorPlace, async () => {
        const found = await settings.log({ limit: FIRST_LINES, after: mark });
        if (closed) return;
        mark = found.mark ?? "";
        take(found.lines);
      });
    }
    if (!closed) timer = setTimeout(look, LOOK_MS);
  };
  level.addEventListener("change", sift);
  search.addEventListener("input", sift);
  follow.addEventListener("change", () => follow.checked && (toEnd(), look()));
  // A reader who scrolls back wants to read; one who comes to the end again wants to follow.
  lines.addEventListener("wheel", () => requestAnimationFrame(readAt), { passive: true });
  lines.addEventListener("keyup", () => requestAnimationFrame(readAt));
  const readAt = () => {
    follow.checked = lines.scrollHeight - lines.scrollTop - lines.clientHeight < NEAR_PX;
  };
  const save = () => saveAs(records.map(({ text }) => text).join("\n"), `${daemon.name}-log.txt`);

  fill(
    body,
    h(
      "div",
      { class: "log-bar" },
      h("div", {}, h("label", { for: "log-level" }, "Show"), level),
      h("div", { class: "log-search" }, h("label", { for: "log-search" }, "Search"), search),
      h("label", { class: "switch" }, h("span", {}, "Follow"), follow),
    ),
    errorPlace,
    lines,
    h("div", { class: "log-foot" }, shown, actionButton("Save as a file", save, "quiet small")),
  );
  look();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function view({ text, level }) {
  const [, day, time, , name, message] = RECORD.exec(text) ?? [];
  if (!day) return h("p", {}, text);
  const [look, sign] = SIGNS[level] ?? [];
  return h(
    "p",
    { class: level ? `log-${look}` : null },
    h("time", { datetime: `${day}T${time}`, title: day }, time),
    h("span", { class: `sign ${look ?? ""}`, "aria-label": level === 2 ? "error" : level ? "warning" : null, role: level ? "img" : null }, sign),
    h("span", { class: "log-words" }, message, h("span", { class: "soft" }, ` ${name}`)),
  );
}
