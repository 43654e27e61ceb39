/**
 * Conversations of this browser, one per chat target: their turns, stored across reloads.
 *
 * A turn: `{id, user, at, state, text, calls, notices, lastId, problem, thread, model, voice, twin}`.
 * `state` is "sending", "answering", "stopping", "done", "stopped" or "failed". `calls` hold
 * `{call, name, args, ok, result, seconds}`; `ok` is missing while a call runs.
 */

import { store, stored, storedNames, onStoredElsewhere } from "../../lib/storage.js";
import { storageName, nameOf } from "./chat-target.js";

const KEEP_TURNS = 100;
const KEEP_RESULT = 20_000;
const SEND_TURNS = 20;
const SAVE_MS = 250;
const UNDER_WAY = new Set(["sending", "answering", "stopping"]);

class Conversation extends EventTarget {
  session = crypto.randomUUID();
  node = "";
  turns = [];
  carried = null; // the turn whose stream this tab reads; its own copy is the newest
  #saving = 0;

  constructor(key) {
    super();
    this.key = key; // the partner's; "" for the brainstem
    this.#take(stored(storageName(key)));
    addEventListener("pagehide", () => this.#saving && this.#save());
    onStoredElsewhere(storageName(key), (value) => this.#merge(value));
  }

  /** Name of the chat target. */
  get name() {
    return nameOf(this.key);
  }

  /** Puts an old conversation away when another machine answers here: its turns were never sent to this one. */
  adopt(node) {
    if (this.node && node && this.node !== node) this.renew();
    this.node = node || this.node;
  }

  /** The turn that is being answered, if any. */
  get current() {
    return this.turns.find((turn) => UNDER_WAY.has(turn.state)) ?? null;
  }

  /** Adds what the user wrote; its id makes sure that it is never acted on twice. */
  add(text) {
    const turn = {
      id: crypto.randomUUID(),
      user: text,
      at: Date.now(),
      state: "sending",
      text: "",
      calls: [],
      notices: [],
      lastId: "",
    };
    this.turns.push(turn);
    this.#save();
    this.#tell("added", turn);
    return turn;
  }

  /** The request body; the same bytes each time for the same turn. */
  request(turn) {
    const before = this.turns.slice(0, this.turns.indexOf(turn)).slice(-SEND_TURNS);
    const history = before.flatMap((earlier) => [
      { role: "user", content: earlier.user },
      ...(earlier.text ? [{ role: "assistant", content: earlier.text }] : []),
    ]);
    return {
      user_input: turn.user,
      conversation_history: history,
      session_id: this.session,
      turn_id: turn.id,
    };
  }

  /** Takes one event of a turn's stream; true when it was the last. Events seen before change nothing. */
  take(turn, { id, data }) {
    const last = data.type === "done" || data.type === "error";
    if (!last && Number(id) && Number(id) <= Number(turn.lastId)) return false;
    if (id) turn.lastId = id;
    if (turn.state === "sending") turn.state = "answering";
    ACT[data.type]?.(turn, data);
    this.changed(turn, last);
    return last;
  }

  /** Says that a turn changed, and keeps it: at once when it is over, else soon. */
  changed(turn, now = false) {
    if (now) this.#save();
    else if (!this.#saving) this.#saving = setTimeout(() => this.#save(), SAVE_MS);
    this.#tell("changed", turn);
  }

  /** Starts anew; returns what brings the old conversation back. */
  renew() {
    const old = { session: this.session, node: this.node, turns: this.turns };
    this.#take({ session: crypto.randomUUID(), node: this.node, turns: [] });
    this.#save();
    this.dispatchEvent(new Event("replaced"));
    return () => {
      this.#take(old);
      this.#save();
      this.dispatchEvent(new Event("replaced"));
    };
  }

  /** Takes over what another tab stored. */
  #merge(value) {
    const mine = this.carried;
    this.#take(value);
    const at = mine ? this.turns.findIndex((turn) => turn.id === mine.id) : -1;
    if (at >= 0) {
      if (this.turns[at].state === "stopping") mine.state = "stopping";
      this.turns[at] = mine;
    }
    this.dispatchEvent(new Event("replaced"));
  }

  #take(value) {
    this.session = value?.session ?? crypto.randomUUID();
    this.node = value?.node ?? this.node;
    this.turns = value?.turns ?? [];
  }

  #save() {
    clearTimeout(this.#saving);
    this.#saving = 0;
    this.turns = this.turns.slice(-KEEP_TURNS);
    const { session, node, turns, key } = this;
    const whole = { session, node, turns, ...(key && { name: this.name }) };
    if (!store(storageName(key), whole))
      store(storageName(key), { ...whole, turns: turns.slice(-KEEP_TURNS / 10) });
  }

  #tell(type, turn) {
    this.dispatchEvent(new CustomEvent(type, { detail: turn }));
  }
}

const ACT = {
  delta: (turn, data) => {
    turn.text += data.text ?? "";
  },
  call: (turn, data) => {
    turn.calls.push({ call: data.call, name: data.name, args: data.args ?? {} });
  },
  result: (turn, data) => {
    let call = turn.calls.find((known) => known.call === data.call);
    if (!call) turn.calls.push((call = { call: data.call, name: data.name, args: {} }));
    const result = typeof data.result === "string" ? data.result : JSON.stringify(data.result ?? "");
    const cut = result.length > KEEP_RESULT;
    Object.assign(call, {
      ok: data.ok !== false,
      seconds: data.seconds,
      result: cut ? result.slice(0, KEEP_RESULT) : result,
      cut,
    });
  },
  notice: (turn, data) => {
    turn.notices.push(data.text ?? "");
  },
  done: (turn, data) => {
    turn.text = data.response ?? data.assistant_response ?? turn.text;
    turn.thread = data.thread ?? "";
    turn.model = data.model ?? "";
    turn.voice = data.voice_response ?? "";
    turn.twin = data.twin_response ?? "";
    turn.state = "done";
  },
  error: (turn, data) => {
    turn.thread = data.thread ?? turn.thread;
    if (turn.state === "stopping") {
      turn.state = "stopped";
      return;
    }
    turn.state = "failed";
    turn.problem = { error: data.error, todo: data.do ?? "", code: data.code ?? "failed" };
  },
};

const had = new Map(); // partner's key → conversation

/** The conversation with a partner; "" is the brainstem. */
export function conversationWith(key) {
  if (!had.has(key)) had.set(key, new Conversation(key));
  return had.get(key);
}

/** Every conversation that this browser keeps. */
export function allConversations() {
  const start = storageName("");
  const keys = storedNames(start).map((name) => (name === start ? "" : name.slice(start.length + 1)));
  return [...new Set(["", ...keys, ...had.keys()])].map(conversationWith);
}

/** Forgets what was said to somebody who is no more. */
export function forgetConversation(key) {
  had.delete(key);
  store(storageName(key), null);
}
