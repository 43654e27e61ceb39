/** Conversations that this machine recorded: the list, the search, and opening one. For the operator. */

import { conversationWith, newConversations } from "../chat/conversation.js";
import { daemon } from "../../lib/daemon-state.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { moment } from "../../lib/format.js";
import * as operations from "../../lib/operations.js";
import { resume } from "../chat/turn-request.js";

const HOST = "brainstem"; // the brainstem's name in the record
const PAGE = 50;
const MOST = 200;
const SOON_MS = 400;

/** The key of the chat target of a row: "" for the brainstem. */
export const keyOf = (row) => (row.with === HOST ? "" : row.with);

class Conversations extends EventTarget {
  rows = [];
  next = null;
  known = false;
  #shown = 0; // lists that show it
  #timer = 0;

  /** Keeps the list fresh while somebody shows it; returns what ends that. */
  watch() {
    if (!this.#shown++) {
      daemonEvents.addEventListener("event", this.#soon);
      daemon.addEventListener("back", this.#soon);
    }
    this.refresh();
    return () => {
      if (--this.#shown) return;
      daemonEvents.removeEventListener("event", this.#soon);
      daemon.removeEventListener("back", this.#soon);
    };
  }

  /** Asks anew; the last known list stays while the daemon does not answer. */
  async refresh() {
    if (!daemon.reads) return;
    const limit = Math.min(MOST, Math.max(PAGE, this.rows.length));
    await calmly(async () => {
      const { conversations = [], next = null } = await operations.conversations.list({ limit });
      const older = this.rows.length > limit ? this.rows.slice(limit) : [];
      this.#take([...conversations, ...older], older.length ? this.next : next);
    });
  }

  /** Fetches older ones. */
  async more() {
    if (!this.next) return;
    await calmly(async () => {
      const { conversations = [], next = null } = await operations.conversations.list({ before: this.next });
      const had = new Set(this.rows.map(({ id }) => id));
      this.#take([...this.rows, ...conversations.filter(({ id }) => !had.has(id))], next);
    });
  }

  /** The row of what is open with a chat target, or undefined. */
  rowOf(conversation) {
    const session = JSON.stringify(conversation.session);
    return this.rows.find((row) => keyOf(row) === conversation.key && JSON.stringify(row.session) === session);
  }

  /** Gives it another title. Raises `Problem`. */
  async rename(id, title) {
    await operations.conversations.rename({ thread: id, title });
    await this.refresh();
  }

  /** Takes it off the list. Raises `Problem`. */
  async remove(id) {
    await operations.conversations.remove({ thread: id });
    this.#take(this.rows.filter((row) => row.id !== id), this.next);
    await this.refresh();
  }

  /** Puts it back. Raises `Problem`. */
  async restore(id) {
    await operations.conversations.restore({ thread: id });
    await this.refresh();
  }

  #soon = () => {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#shown && this.refresh(), SOON_MS);
  };

  #take(rows, next) {
    this.rows = rows;
    this.next = next;
    this.known = true;
    this.dispatchEvent(new Event("change"));
  }
}

export const conversations = new Conversations();

/** Conversations that were taken off the list. Raises `Problem`. */
export const removed = async () => (await operations.conversations.list({ removed: true, limit: MOST })).conversations ?? [];

/** Sentences that were found: `{found, words, next}`. Raises `Problem`. */
export function search(words, below = null) {
  return operations.conversations.search({ words, ...(below && { below }) });
}

let asked = 0; // conversations that were to be opened

/**
 * Opens a recorded conversation, on the course that has the turn `at`, and returns the key of its chat target; null where
 * another one was chosen, or a new one begun, before it came. An answer under way is read on. Raises `Problem`.
 */
export async function openConversation(id, at = "") {
  const mine = (asked += 1);
  const before = newConversations();
  const found = await operations.conversations.show({ thread: id, ...(at && { at }) });
  if (mine !== asked || before !== newConversations()) return null;
  const row = found.conversation;
  const conversation = conversationWith(keyOf(row));
  conversation.adopt(daemon.health?.node ?? "");
  conversation.open({
    session: row.session,
    thread: row.id,
    turns: found.turns.map((turn) => turnOf(turn, row.id)),
    earlier: found.earlier,
  });
  resume();
  return keyOf(row);
}

/** Fetches turns before the first one that is here. Raises `Problem`. */
export async function loadEarlier(conversation) {
  const id = conversation.thread || conversations.rowOf(conversation)?.id;
  const first = conversation.turns[0];
  if (!id || !first || !conversation.earlier) return;
  const { turns, earlier } = await operations.conversations.show({ thread: id, before: first.id });
  if (conversation.turns[0] !== first) return; // another one was opened meanwhile
  conversation.prepend({ turns: turns.map((turn) => turnOf(turn, id)), earlier });
}

const STATES = { done: "done", stopped: "stopped", failed: "failed" };
const CUT_OFF = { error: "This was not answered.", todo: "Ask again.", code: "interrupted" };

/** A recorded turn as the page keeps its own. */
export function turnOf(row, thread) {
  const state = row.running ? "answering" : (STATES[row.state] ?? "failed");
  return {
    id: row.id,
    user: row.user,
    at: moment(row.at).getTime(),
    state,
    text: row.running ? "" : row.text,
    calls: row.running ? [] : row.calls,
    rounds: row.running ? [] : row.rounds,
    plans: row.running ? [] : row.plans,
    notices: row.notices,
    lastId: "",
    thread,
    model: row.model,
    provider: row.provider,
    seconds: row.seconds,
    tokensIn: row.input_tokens,
    tokensOut: row.output_tokens,
    voice: row.voice,
    twin: row.twin,
    agentsUsed: row.agents_used,
    follows: row.follows,
    versions: row.versions,
    ...(row.pictures && { pictures: row.pictures }),
    ...(row.timer && { timer: row.timer }),
    ...(state === "failed" && { problem: row.problem ?? CUT_OFF }),
  };
}

async function calmly(work) {
  try {
    await work();
  } catch (found) {
    if (found.code === undefined) throw found; // what was known stays; the banner says that the daemon is away
  }
}
