/** The list of conversations: the latest first, a search over what was said, and those taken off the list. */

import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { count, timeOrDay } from "../../lib/format.js";
import { wordParts } from "../../lib/found-words.js";
import { nameOf } from "../chat/chat-target.js";
import { twins } from "../twins/twins-state.js";
import { field, formDialog } from "../ui/form-dialog.js";
import { keyedList } from "../ui/keyed-list.js";
import { menuButton } from "../ui/menu.js";
import { problemView } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { conversations, keyOf, removed, search } from "./conversations-state.js";

const PAUSE_MS = 250;
let fields = 0;
let kept = ""; // what was searched for, also after a conversation with somebody else was opened

/**
 * The list beside the chat, which shows `conversation`; `renew()` begins a new one. `redraw()` after another was opened,
 * `write()` goes to the search, `close()` when done.
 */
export function conversationList({ conversation, renew }) {
  const isOpen = (row) => conversations.rowOf(conversation)?.id === row.id;
  const gone = (row, open) => open && renew();
  const id = `conversation-search-${++fields}`;
  const input = h("input", { type: "search", id, placeholder: "Search what was said", autocomplete: "off" });
  const status = h("p", { class: "soft note", role: "status" });
  const place = h("div", { class: "conversation-place" });
  const foot = h("button", { type: "button", class: "quiet small" });
  const list = keyedList("ul", "conversation-rows", (row) => row.id, (row) => conversationRow(row, { isOpen, gone }));
  const older = actionButton("Older", () => conversations.more(), "quiet small");
  const element = h(
    "aside",
    { class: "conversations", "aria-label": "Conversations" },
    h(
      "header",
      { class: "conversations-head" },
      h("h2", {}, "Conversations"),
      actionButton("New", renew, "quiet small"),
    ),
    h("label", { for: id, class: "visually-hidden" }, "Search what was said"),
    h("div", { class: "conversations-search" }, input, status),
    place,
    foot,
  );
  const nothing = h("p", { class: "soft note", hidden: true }, "What you talk about appears here.");
  let view = "list"; // or "search", "removed"
  let asked = 0;
  let timer = 0;

  const draw = () => {
    if (view !== "list") return;
    list.show(conversations.rows);
    older.hidden = !conversations.next;
    nothing.hidden = !(conversations.known && conversations.rows.length === 0);
  };
  const show = (next) => {
    view = next;
    asked += 1;
    fill(status);
    fill(foot, next === "removed" ? "Back to the list" : "Removed conversations");
    if (next === "list") {
      fill(place, nothing, list.element, older);
      draw();
    }
  };
  const attempt = async (work) => {
    const mine = ++asked;
    try {
      const found = await work();
      if (mine === asked) return found;
    } catch (problem) {
      if (problem.code === undefined) throw problem;
      if (mine === asked) fill(place, problemView(problem));
    }
    return null;
  };
  const look = async () => {
    const words = (kept = input.value.trim());
    if (!words) return show("list");
    show("search");
    fill(status, "Searching…");
    const results = h("ul", { class: "conversation-rows", role: "list" });
    const found = await attempt(() => search(words));
    if (!found) return;
    fill(place, results);
    add(results, found, words);
  };
  const add = (results, { found, words, next }, text) => {
    for (const one of found) results.append(result(one, words));
    const number = results.children.length;
    fill(status, number ? count(number, "conversation") : next ? "Nothing so far." : "Nothing was found.");
    if (!next) return;
    const further = h("button", { type: "button", class: "quiet small" }, "Search further back");
    further.addEventListener("click", async () => {
      fill(status, "Searching…");
      const more = await attempt(() => search(text, next));
      if (!more) return;
      further.remove();
      add(results, more, text);
    });
    place.append(further);
  };
  const showRemoved = async () => {
    show("removed");
    input.value = kept = "";
    const rows = await attempt(removed);
    if (!rows) return;
    const listed = h("ul", { class: "conversation-rows", role: "list" }, rows.map(removedRow));
    fill(status, rows.length ? "Removed from the list; the log still has them." : "None was removed.");
    fill(place, listed);
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") (clearTimeout(timer), look());
    if (event.key !== "Escape" || !input.value) return;
    event.stopPropagation();
    input.value = "";
    look();
  });
  foot.addEventListener("click", () => (view === "removed" ? show("list") : showRemoved()));
  conversations.addEventListener("change", draw);
  twins.addEventListener("change", draw); // their names
  const end = conversations.watch();
  show("list");
  if (kept) {
    input.value = kept;
    look();
  }
  return {
    element,
    redraw: draw,
    write: () => input.focus(),
    close() {
      clearTimeout(timer);
      end();
      conversations.removeEventListener("change", draw);
      twins.removeEventListener("change", draw);
      list.close();
    },
  };
}

/** A conversation that was found, with the places; each leads there. */
function result({ conversation, excerpts }, words) {
  const { program } = conversation;
  const address = program ? `#/activity/thread/${conversation.id}` : `#/chat/conversation/${conversation.id}`;
  const place = (turn) => (program ? address : `${address}/${turn}/${encodeURIComponent(words.join(" "))}`);
  return h(
    "li",
    { class: "conversation found" },
    h(
      "a",
      { class: "conversation-link", href: address },
      h("span", { class: "conversation-title" }, marked(conversation.title, words)),
      h("span", { class: "soft" }, [timeOrDay(conversation.updated), withWhom(conversation), program && `a program over ${program}`].filter(Boolean).join(", ")),
    ),
    excerpts.map(({ turn, text, yours, at }) =>
      h(
        "a",
        { class: "excerpt", href: place(turn) },
        h("span", { class: "soft" }, `${yours ? (program ? "it" : "you") : withWhom(conversation)}, ${timeOrDay(at)}: `),
        marked(text, words),
      ),
    ),
  );
}

function removedRow(row) {
  const back = h("button", { type: "button", class: "quiet small" }, "Put back");
  const element = h(
    "li",
    { class: "conversation" },
    h(
      "a",
      { class: "conversation-link", href: `#/chat/conversation/${row.id}` },
      h("span", { class: "conversation-title" }, row.title),
      h("span", { class: "soft" }, `${timeOrDay(row.updated)}, ${withWhom(row)}`),
    ),
    back,
  );
  back.setAttribute("aria-label", `Put back ${row.title}`);
  back.addEventListener("click", async () => {
    try {
      await conversations.restore(row.id);
      element.remove();
    } catch (found) {
      if (found.code === undefined) throw found;
      element.append(problemView(found));
    }
  });
  return element;
}

/** The text with every word that was searched for marked. */
const marked = (text, words) =>
  wordParts(text, words).map((part) => (part.found ? h("mark", {}, part.text) : part.text));

const LONGEST = 120;
const ENDS = { stopped: "stopped", failed: "not answered", open: "no answer yet" };

/** The name of whom a conversation is with. */
const withWhom = (row) => nameOf(keyOf(row)) || daemon.name;

/** A row that draws itself again by `update(row)`. `gone(row, open)` is called after it was removed. */
function conversationRow(row, { isOpen, gone }) {
  const title = h("span", { class: "conversation-title" });
  const about = h("span", { class: "soft" });
  const link = h("a", { class: "conversation-link" }, title, about);
  let now = row;
  const menu = menuButton("⋯", "", () => [
    { label: "Rename", run: () => rename(now) },
    { label: "Remove from the list", run: () => remove(now, isOpen(now), gone) },
  ]);
  const element = h("li", { class: "conversation" }, link, menu);
  const update = (next) => {
    now = next;
    link.href = `#/chat/conversation/${next.id}`;
    if (isOpen(next)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    fill(title, next.title);
    fill(about, [timeOrDay(next.updated), withWhom(next), ENDS[next.state]].filter(Boolean).join(", "));
    menu.firstElementChild.setAttribute("aria-label", `More for ${next.title}`);
  };
  update(row);
  return { element, update, close: () => undefined };
}

function rename(row) {
  const title = field("Title", {
    value: row.title,
    maxlength: LONGEST,
    help: "Leave it empty to have the first words again.",
  });
  formDialog({
    title: "Rename the conversation",
    verb: "Rename",
    fields: [title],
    run: () => conversations.rename(row.id, title.input.value),
  });
}

async function remove(row, open, gone) {
  try {
    await conversations.remove(row.id);
  } catch (found) {
    if (found.code === undefined) throw found;
    toast(`"${row.title}" could not be removed. ${found.message}`);
    return;
  }
  gone(row, open);
  const back = () => conversations.restore(row.id).catch((found) => toast(found.message));
  toast("Removed from the list. The log still has what was said.", {
    actions: [{ label: "Undo", run: back }],
    focus: true,
  });
}
