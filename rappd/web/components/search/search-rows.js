/** Rows of the search: what the daemon found, what the page has, and commands, in groups of one kind. */

import { ask } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { firstSentence, stripControl, timeOrDay } from "../../lib/format.js";
import { nameOf } from "../chat/chat-target.js";
import { toast } from "../ui/toast.js";

const COMMANDS = new URL("./commands.json", import.meta.url);
const MOST = 6; // of a kind
const HOST = "brainstem"; // the brainstem's name in the record
const KINDS = {
  page: "Pages",
  action: "Do",
  conversation: "Conversations",
  agent: "Agents",
  twin: "Twins",
  memory: "Memories",
  machine: "Machines",
  setting: "Settings",
  command: "Commands for a terminal",
};
const part = encodeURIComponent;
const PLACES = {
  conversation: (key, { turn, program }, words) =>
    program ? `#/activity/thread/${part(key)}` : `#/chat/conversation/${[key, ...(turn ? [turn, words] : [])].map(part).join("/")}`,
  agent: (key) => `#/agents/${part(key)}`,
  twin: (key) => `#/twins/twin/${part(key)}`,
  memory: (key) => {
    const [twin, person] = key.split("/");
    return `#/agents/memory${twin || person ? `/${part(twin || "brainstem")}` : ""}${person ? `/${part(person)}` : ""}`;
  },
  machine: (key) => `#/machines/peer/${part(key)}`,
  setting: (key) => `#/settings/${part(key)}`,
};
let commands = null; // promise of all of them, fetched with the first search

/** The daemon's findings for `words`. Raises `Problem`. */
export async function found(words, signal) {
  if (!words.trim()) return [];
  const { found: rows = [] } = await ask(`/search?words=${part(words)}`, { signal });
  return rows.map((row) => foundRow(row, words));
}

/** A finding of the daemon as a row. Of a conversation it holds the words themselves, with who said them and when. */
export function foundRow(row, words) {
  const { kind, title, key } = row;
  const href = PLACES[kind]?.(key, row, words.trim()) ?? "#/chat";
  if (kind !== "conversation") return { kind, title, detail: firstSentence(row.detail), href };
  const who = row.turn && row.yours ? (row.program ? `a program over ${row.program}` : "you") : nameOf(row.with === HOST ? "" : row.with) || daemon.name;
  const detail = `${row.turn ? `${who}, ${timeOrDay(row.at)}: ` : `${timeOrDay(row.at)}, ${who}`}${row.detail}`;
  return { kind, title, detail, href, words: words.trim().split(/\s+/) };
}

/** The commands of the command line; none while they cannot be fetched. */
export function commandRows() {
  commands ??= fetch(COMMANDS)
    .then((response) => response.json())
    .catch(() => {
      commands = null;
      return [];
    });
  return commands.then((rows) =>
    rows.map(({ name, help }) => ({ kind: "command", title: name, detail: help, run: () => copy(name) })),
  );
}

/** The `rows` that have all words of `text`, at most six of a kind, titles that begin so first. */
export function narrowed(rows, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const ranked = rows
    .map((row) => ({ row, title: row.title.toLowerCase(), all: `${row.title} ${row.detail}`.toLowerCase() }))
    .filter(({ all }) => words.every((word) => all.includes(word)))
    .map(({ row, title }) => ({ row, rank: rankOf(title, words) }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ row }) => row);
  const counts = {};
  return ranked.filter(({ kind }) => (counts[kind] = (counts[kind] ?? 0) + 1) <= MOST);
}

function rankOf(title, words) {
  if (title.startsWith(words.join(" "))) return 0;
  if (words.every((word) => title.includes(word))) return title.startsWith(words[0]) ? 1 : 2;
  return 3;
}

/** `[title, rows]` by kind, in the order of the list above. */
export const grouped = (rows) =>
  Object.entries(KINDS)
    .map(([kind, title]) => [title, rows.filter((row) => row.kind === kind)])
    .filter(([, some]) => some.length);

/** Foreign words cannot steer the text around them. */
export const tamed = (row) => ({ ...row, title: stripControl(row.title), detail: stripControl(row.detail) });

async function copy(name) {
  try {
    await navigator.clipboard.writeText(name);
    toast(`Copied \`${name}\` for a terminal.`);
  } catch {
    toast(`In a terminal: \`${name}\``); // the browser lets nobody copy here
  }
}
