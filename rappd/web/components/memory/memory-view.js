/** Memory: what the brainstem and each twin remember, searched, corrected and deleted. */

import { ask, get, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { onDay } from "../../lib/format.js";
import { go } from "../../lib/router.js";
import { operatorNotice } from "../layout/operator-notice.js";
import { routesOf, twins } from "../twins/twins-state.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { openMemory, openNewMemory } from "./memory-dialog.js";

const HOST = "brainstem"; // in an address that names a person
const SEARCH_MS = 200;
const NEWS_MS = 1000;
const UNDO_SECONDS = 10;

/** Fills `place` with the memories of the brainstem, or of the twin `key`, perhaps of one `person`; `close()` when done. */
export function memoryView(place, key = "", person = "") {
  if (!daemon.operator) {
    fill(place, operatorNotice("see what is remembered"));
    return { close: () => undefined };
  }
  return new MemoryView(place, key === HOST ? "" : key, person);
}

class MemoryView {
  #key;
  #guid = "";
  #shown = []; // the memories fetched so far
  #counts = { found: 0, total: 0 };
  #asked = 0;
  #timer = 0;
  #news = 0;
  #closed = false;
  #errorPlace = h("div", {});
  #whose = h("select", { "aria-label": "Who remembers" });
  #person = h("select", { "aria-label": "About whom", hidden: true });
  #search = h("input", { type: "search", placeholder: "Search memories", "aria-label": "Search memories" });
  #add = actionButton("Add a memory", () => this.#addOne());
  #summary = h("p", { class: "soft", role: "status" });
  #list = h("ul", { class: "memories", role: "list" });
  #more = actionButton("Show more", () => this.#load(true), "quiet", { hidden: true });

  constructor(place, key, person) {
    this.#key = key;
    this.#guid = person;
    fill(
      place,
      h("div", { class: "memory-controls" }, this.#whose, this.#person, this.#search, this.#add),
      this.#errorPlace,
      this.#summary,
      this.#list,
      this.#more,
    );
    this.#whose.addEventListener("change", () =>
      go("agents", "memory", ...(this.#whose.value ? [this.#whose.value] : [])),
    );
    this.#person.addEventListener("change", () => {
      this.#guid = this.#person.value;
      this.#load();
    });
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#load(), SEARCH_MS);
    });
    twins.addEventListener("change", this.#drawWhose);
    daemonEvents.addEventListener("event", this.#happened);
    daemon.addEventListener("back", this.#refresh);
    this.#drawWhose();
    this.#refresh();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#news);
    twins.removeEventListener("change", this.#drawWhose);
    daemonEvents.removeEventListener("event", this.#happened);
    daemon.removeEventListener("back", this.#refresh);
  }

  #drawWhose = () => {
    const rows = twins.rows.filter(({ state }) => state !== "archived");
    const options = [["", daemon.name], ...rows.map((row) => [row.key, twins.toldApart(row.key)])];
    if (this.#key && !rows.some((row) => row.key === this.#key)) options.push([this.#key, this.#key]);
    fill(this.#whose, options.map(([value, name]) => h("option", { value }, name)));
    this.#whose.value = this.#key;
  };

  #refresh = () => {
    this.#people();
    this.#load();
  };

  /** A turn may have changed what is remembered. */
  #happened = () => {
    clearTimeout(this.#news);
    this.#news = setTimeout(this.#refresh, NEWS_MS);
  };

  async #people() {
    await attemptIn(this.#errorPlace, async () => {
      const { people } = await get(`${routesOf(this.#key)}/memories/people`);
      fill(
        this.#person,
        people.map(({ user_guid: guid, count, devices }) =>
          h("option", { value: guid }, `${personName(guid, devices)}, ${count}`),
        ),
      );
      this.#person.hidden = people.length < 2;
      this.#person.value = this.#guid;
    });
  }

  async #load(further = false) {
    const asked = ++this.#asked;
    const offset = further ? this.#shown.length : 0;
    await attemptIn(this.#errorPlace, async () => {
      const query = new URLSearchParams({ user_guid: this.#guid, query: this.#search.value, offset });
      const page = await get(`${routesOf(this.#key)}/memories?${query}`);
      if (asked !== this.#asked || this.#closed) return;
      const before = JSON.stringify([this.#shown, this.#counts]);
      this.#shown = further ? [...this.#shown, ...page.memories] : page.memories;
      this.#counts = { found: page.found, total: page.total };
      if (JSON.stringify([this.#shown, this.#counts]) !== before || !this.#list.children.length) this.#draw();
    });
  }

  #draw() {
    const { found, total } = this.#counts;
    const held =
      this.#list.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
    fill(this.#summary, this.#told(found, total));
    fill(
      this.#list,
      this.#shown.map((memory) =>
        memoryRow(memory, { edit: () => this.#edit(memory), remove: (event) => this.#remove(memory, event) }),
      ),
    );
    this.#more.hidden = this.#shown.length >= found;
    if (held) this.#list.querySelector(`[aria-label="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  }

  #told(found, total) {
    const name = this.#whose.selectedOptions[0]?.textContent ?? daemon.name;
    if (total === 0) return `${name} remembers nothing here yet. Say "remember that…" in Chat, or add a memory.`;
    if (!this.#search.value.trim()) return total === 1 ? "One memory" : `${total} memories, newest first`;
    return found === 0 ? "No memory has these words." : `${found} of ${total} memories`;
  }

  #path(memory) {
    return `${routesOf(this.#key)}/memories/${encodeURIComponent(memory.key)}`;
  }

  #addOne() {
    openNewMemory(async (fields) => {
      await post(`${routesOf(this.#key)}/memories`, { ...fields, ...(this.#guid && { user_guid: this.#guid }) });
      toast("The memory is added.");
      this.#refresh();
    });
  }

  #edit(memory) {
    const save = async (fields, version) => {
      await ask(this.#path(memory), { method: "PUT", json: { ...fields, version, user_guid: this.#guid } });
      toast("The memory is changed.");
      this.#load();
    };
    openMemory(memory, save);
  }

  async #remove(memory, event) {
    const guid = this.#guid;
    const query = new URLSearchParams({ version: memory.version, user_guid: guid });
    let undo = "";
    const done = await attemptIn(this.#errorPlace, async () => {
      ({ undo } = await ask(`${this.#path(memory)}?${query}`, { method: "DELETE" }));
    });
    if (!done) return this.#load();
    const back = () =>
      attemptIn(this.#errorPlace, async () => {
        await post(`${routesOf(this.#key)}/memories/undo`, { key: memory.key, undo, user_guid: guid });
        this.#refresh();
      });
    await this.#load();
    this.#people();
    toast("Memory deleted.", {
      actions: [{ label: "Undo", run: back }],
      seconds: UNDO_SECONDS,
      focus: event.detail === 0,
    });
  }
}

/** "Shared", "Ada's phone", or the beginning of an id. */
function personName(guid, devices) {
  if (!guid) return "Shared by everybody";
  return devices.length ? devices.join(", ") : `Person ${guid.slice(0, 8)}`;
}

/** The row of `memory`; `edit()` and `remove(event)` are its two actions. */
function memoryRow(memory, { edit, remove }) {
  const start = memory.message.slice(0, 40);
  const button = (label, onclick) =>
    actionButton(label, onclick, "quiet", { "aria-label": `${label}: ${start}` });
  return h(
    "li",
    { class: "card memory", "data-key": memory.key },
    h(
      "div",
      { class: "card-words" },
      h("p", { class: "memory-text" }, memory.message || "(empty)"),
      h(
        "p",
        { class: "soft" },
        [memory.theme, when(memory), ...memory.tags.map((tag) => `#${tag}`)].filter(Boolean).join(" · "),
      ),
    ),
    h("div", { class: "card-actions" }, button("Edit", edit), button("Delete", remove)),
  );
}

/** "today, 14:02" as far as the memory says it. */
function when({ date, time }) {
  const moment = new Date(`${date}T${time || "00:00:00"}`);
  if (Number.isNaN(moment.getTime())) return date;
  return [onDay(moment), time.slice(0, 5)].filter(Boolean).join(", ");
}
