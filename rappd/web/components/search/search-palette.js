/** The search over everything: one field, results by kind as one types, all by the keyboard. */

import { Problem } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h, visuallyHidden } from "../../lib/dom.js";
import { wordParts } from "../../lib/found-words.js";
import { openDialog } from "../ui/dialog.js";
import { problemView } from "../ui/problem.js";
import { commandRows, found, grouped, narrowed, tamed } from "./search-rows.js";

const PAUSE_MS = 120;
const LIST = "search-results";

/** Opens it, unless a dialog is open. `shortcuts()` shows the keys. */
export function openSearch(pages, { shortcuts }) {
  if (document.querySelector("dialog[open]")) return;
  const own = pageEntries(pages, { shortcuts });
  const field = h("input", {
    type: "search",
    role: "combobox",
    "aria-label": "Search everything",
    "aria-expanded": "true",
    "aria-controls": LIST,
    "aria-autocomplete": "list",
    autocomplete: "off",
    spellcheck: "false",
    enterkeyhint: "go",
    placeholder: "Conversations, agents, twins, memories, machines, settings, commands",
  });
  const list = h("div", { role: "listbox", id: LIST, class: "search-list", "aria-label": "Results" });
  const status = h("p", { class: "visually-hidden", role: "status" });
  const nothing = h("p", { class: "soft search-nothing" });
  const problem = h("div", {});
  let options = []; // {element, row}
  let at = 0;
  let control = null;
  let timer = 0;
  let running = null; // promise of the search under way, or of the last one
  const dialog = openDialog({
    title: "Search",
    wide: true,
    build: () => h("div", { class: "dialog-body search" }, field, problem, list, nothing, status),
    closed: () => {
      clearTimeout(timer);
      control?.abort();
    },
  });
  dialog.classList.add("search-dialog");

  const mark = (to) => {
    at = options.length ? (to + options.length) % options.length : 0;
    for (const [index, { element }] of options.entries()) element.setAttribute("aria-selected", String(index === at));
    const chosen = options[at]?.element;
    if (chosen) field.setAttribute("aria-activedescendant", chosen.id);
    else field.removeAttribute("aria-activedescendant");
    chosen?.scrollIntoView({ block: "nearest" });
  };
  const choose = (row) => {
    dialog.close();
    if (row.href) location.hash = row.href;
    else row.run();
  };
  const show = (rows, typed, complete) => {
    options = [];
    const groups = grouped(rows.map(tamed));
    fill(
      list,
      groups.map(([title, some], number) =>
        h(
          "div",
          { role: "group", "aria-labelledby": `search-kind-${number}` },
          h("p", { id: `search-kind-${number}`, class: "search-kind" }, title),
          some.map(option),
        ),
      ),
    );
    list.hidden = options.length === 0;
    const none = complete && typed && options.length === 0;
    nothing.textContent = none ? `Nothing is called “${typed}”. Other words may find it.` : "";
    if (complete) status.textContent = none ? nothing.textContent : `${options.length} ${options.length === 1 ? "result" : "results"}`;
    mark(0);
  };
  const marked = (text, words = []) =>
    wordParts(text, words).map((part) => (part.found ? h("mark", {}, part.text) : part.text));
  const option = (row) => {
    const element = h(
      "div",
      { role: "option", id: `search-option-${options.length}`, class: "search-option", onclick: () => choose(row) },
      h("bdi", {}, marked(row.title, row.words)),
      row.detail && [visuallyHidden(", "), h("bdi", { class: "soft" }, marked(row.detail, row.words))],
    );
    options.push({ element, row });
    return element;
  };
  const look = async () => {
    const typed = field.value.trim();
    control?.abort();
    control = new AbortController();
    const { signal } = control;
    const here = narrowed(own, typed);
    show(here, typed, !typed);
    if (!typed) return;
    try {
      const [rows, commands] = await Promise.all([found(typed, signal), commandRows()]);
      if (signal.aborted) return;
      fill(problem);
      show([...here, ...rows, ...narrowed(commands, typed)], typed, true);
    } catch (failed) {
      if (failed.name === "AbortError") return;
      if (!(failed instanceof Problem)) throw failed;
      fill(problem, problemView(failed));
    }
  };
  const search = () => {
    clearTimeout(timer);
    timer = 0;
    running = look();
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE_MS);
  });
  field.addEventListener("keydown", async (event) => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: Math.min(at + 8, options.length - 1), PageUp: Math.max(at - 8, 0) }[event.key];
    if (to !== undefined) mark(to);
    else if (event.key === "Escape") dialog.close(); // a browser would first empty the field
    else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      if (timer) search();
      await running; // what was typed last counts, not what is still shown
      if (options[at] && dialog.open) choose(options[at].row);
    } else return;
    event.preventDefault();
  });
  search();
  field.focus();
}

const VIEWS = [
  ["Memory: what is remembered", "#/agents/memory"],
  ["Lineage of twins", "#/twins/lineage"],
  ["Eggs: open, compare, undo", "#/twins/eggs"],
  ["Cartridges", "#/twins/cartridges"],
  ["Archived twins", "#/twins/archived"],
  ["Outbox: what waits for machines that are away", "#/machines/outbox"],
  ["Neighborhood: all your machines, snapshots, backup", "#/machines/neighborhood"],
  ["Threads: what was said", "#/activity/threads"],
  ["Picture: who asks whom", "#/activity/organism"],
  ["Log", "#/activity/log"],
];

/** Rows `{kind, title, detail, href}` or `{…, run}` of everything, to be narrowed by words. */
function pageEntries(pages, { shortcuts }) {
  const rows = pages.map(({ id, title }) => ({ kind: "page", title, detail: "", href: `#/${id}` }));
  for (const [title, href] of VIEWS) rows.push({ kind: "page", title, detail: "", href });
  rows.push({ kind: "action", title: "Keyboard shortcuts", detail: "", run: shortcuts });
  for (const [title, choice] of COLOURS)
    rows.push({ kind: "action", title, detail: "", run: () => attempted(() => colour(choice)) });
  if (daemon.operator)
    rows.push(
      ...ACTIONS.map(([title, detail, run]) => ({ kind: "action", title, detail, run: () => attempted(run) })),
    );
  return rows;
}

const COLOURS = [
  ["Dark colours", "dark"],
  ["Light colours", "light"],
  ["Colours as this device has them, light or dark", ""],
];
const colour = async (choice) => (await import("../layout/theme.js")).chooseTheme(choice);

const ACTIONS = [
  ["New agent", "one file with one skill", async () => (await import("../agents/new-agent.js")).openNewAgent("")],
  ["New twin", "", async () => (await import("../twins/twin-dialogs.js")).openNewTwin()],
  ["Add a phone", "shows a QR code", async () => (await import("../devices/phone-pairing.js")).addPhone()],
  ["Add a machine by its address", "", async () => (await import("../machines/machine-dialogs.js")).openAddAddress()],
  ["Sign out of this browser", "you can still chat", () => daemon.close()],
];

/** Runs `work`. */
async function attempted(work) {
  try {
    await work();
  } catch (found) {
    if (found.code === undefined) throw found;
    openDialog({ title: "It didn't work", build: () => h("div", { class: "dialog-body" }, problemView(found)) });
  }
}
