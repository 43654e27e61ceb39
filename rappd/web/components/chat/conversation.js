/**
 * Conversations of this browser, one per chat target: their turns, stored across reloads.
 *
 * A turn: `{id, user, at, state, text, calls, notices, lastId, problem, thread, model, voice, twin, agentsUsed, follows,
 * versions}`.
 * `state` is "sending", "answering", "stopping", "done", "stopped" or "failed". `calls` hold
 * `{call, name, args, ok, result, seconds}`; `ok` is missing while a call runs. `follows` is the id of the turn before,
 * `versions` the ids of the turns that follow the same one, as the daemon knows them. `others` are turns that were
 * replaced: an edited sentence, an answer that was asked for again. `pictures`, where some went with it, hold
 * `{type, name, bytes, data}`; `data` is not stored here. `shownIn` is the turn whose pictures they were first.
 */

import { store, stored, storedNames, onStoredElsewhere } from "../../lib/storage.js";
import { Problem, newId } from "../../lib/api.js";
import { storageName, nameOf } from "./chat-target.js";

const KEEP_TURNS = 100;
const KEEP_THOUGHTS = 20_000;
const KEEP_RESULT = 20_000;
const SEND_TURNS = 20;
const SAVE_MS = 250;
const keeping = () => import("../attachments/picture-store.js"); // few conversations have pictures
const UNDER_WAY = new Set(["sending", "answering", "stopping"]);

let renewals = 0;

/** The number of times that a new conversation was begun in this tab. */
export const newConversations = () => renewals;

class Conversation extends EventTarget {
  session = newId();
  node = "";
  turns = [];
  others = [];
  earlier = 0; // turns before the first one here that only the daemon has
  thread = ""; // its id on the daemon, once known
  model = ""; // the one chosen for it, or for the twin, once that is known; "" is the one for everybody
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
    if (this.node && node && this.node !== node) this.#empty();
    this.node = node || this.node;
  }

  /** The turn that is being answered, if any. */
  get current() {
    return this.turns.find((turn) => UNDER_WAY.has(turn.state)) ?? null;
  }

  /**
   * Adds what the user wrote; its id makes sure that it is never acted on twice. `instead` is the turn that it replaces:
   * that one, and what came after it, goes to `others`; its pictures go along again.
   */
  add(text, { instead = null, pictures = [] } = {}) {
    if (instead) this.#putAside(this.turns.indexOf(instead));
    const last = this.turns.at(-1);
    const turn = {
      id: newId(),
      user: text,
      at: Date.now(),
      state: "sending",
      text: "",
      calls: [],
      notices: [],
      lastId: "",
      follows: last ? last.id : (instead?.follows ?? ""),
    };
    if (instead?.pictures?.length) pictures = instead.pictures;
    if (pictures.length) {
      turn.pictures = pictures;
      if (instead) turn.shownIn = instead.shownIn ?? { id: instead.id, at: instead.at, thread: instead.thread };
      keeping().then(({ keepPictures }) => keepPictures(turn));
    }
    turn.branches = this.others.length > 0 || this.turns.some(({ versions = [] }) => versions.length > 1);
    this.turns.push(turn);
    this.#save();
    if (instead) this.dispatchEvent(new Event("replaced"));
    else this.#tell("added", turn);
    return turn;
  }

  /** Ids of the versions of a turn, the oldest first; the turn's own is among them. */
  versions(turn) {
    const follows = this.#before(turn);
    const here = [...this.others, turn].filter((one) => (one === turn ? follows : one.follows) === follows);
    const ids = here.sort((one, other) => one.at - other.at).map(({ id }) => id);
    return [...new Set([...(turn.versions ?? []), ...ids])];
  }

  /** Shows the version `id` in place of a turn, with what came after it. False when only the daemon has it. */
  choose(turn, id) {
    const wanted = this.others.find((other) => other.id === id);
    if (!wanted) return false;
    this.#putAside(this.turns.indexOf(turn));
    for (let next = wanted; next; next = this.others.findLast(({ follows }) => follows === this.turns.at(-1).id)) {
      this.others.splice(this.others.indexOf(next), 1);
      this.turns.push(next);
    }
    this.#save();
    this.dispatchEvent(new Event("replaced"));
    return true;
  }

  /** Takes over what the daemon recorded. Turns that it does not know yet stay, where it is the same conversation. */
  open({ session, thread, turns, earlier }) {
    const same = JSON.stringify(session) === JSON.stringify(this.session);
    const known = new Set(turns.map(({ id }) => id));
    const mine = same ? this.turns.filter(({ id, state }) => !known.has(id) && UNDER_WAY.has(state)) : [];
    const kept = (turn) => (same && this.turns.find(({ id, state }) => id === turn.id && UNDER_WAY.has(state))) || turn;
    this.#take({ session, node: this.node, turns: [...turns.map(kept), ...mine], earlier, thread });
    this.#save();
    this.dispatchEvent(new Event("replaced"));
  }

  /** Puts earlier turns in front. */
  prepend({ turns, earlier }) {
    this.turns = [...turns, ...this.turns];
    this.earlier = earlier;
    this.#save();
    this.#tell("prepended", turns);
  }

  /** The request body; the same bytes each time for the same turn. Raises `Problem` when its pictures are gone. */
  async request(turn) {
    const before = this.turns.slice(0, this.turns.indexOf(turn)).slice(-SEND_TURNS);
    const shown = [...before, turn].some(({ pictures }) => pictures?.length);
    const { asSent, ofEarlier } = shown ? await keeping() : {};
    const pictures = shown ? await asSent(turn) : [];
    if (!pictures) throw new Problem({ error: "The picture is no longer in this browser.", do: "Attach it again." });
    const seen = shown ? await ofEarlier(before) : new Map();
    const history = before.flatMap((earlier) => [
      { role: "user", content: earlier.user, ...(seen.has(earlier) && { pictures: seen.get(earlier) }) },
      ...(earlier.text ? [{ role: "assistant", content: earlier.text }] : []),
    ]);
    return {
      user_input: turn.user,
      conversation_history: history,
      session_id: this.session,
      turn_id: turn.id,
      ...(turn.branches && { follows: turn.follows }),
      ...(pictures.length && { pictures }),
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
    if (turn.thread) this.thread = turn.thread;
    if (now) this.#save();
    else if (!this.#saving) this.#saving = setTimeout(() => this.#save(), SAVE_MS);
    this.#tell("changed", turn);
  }

  /** Starts anew; returns what brings the old conversation back. */
  renew() {
    renewals += 1;
    const { session, node, turns, others, earlier, thread } = this;
    const old = { session, node, turns, others, earlier, thread };
    this.#empty();
    return () => {
      this.#take(old);
      this.#save();
      this.dispatchEvent(new Event("replaced"));
    };
  }

  #empty() {
    this.#take({ session: newId(), node: this.node, turns: [] });
    this.#save();
    this.dispatchEvent(new Event("replaced"));
  }

  /** Takes over what is stored where it differs. */
  reread() {
    const value = stored(storageName(this.key));
    const states = (turns = []) => turns.map(({ id, state }) => `${id} ${state}`).join();
    if (value && states(value.turns) !== states(this.turns.slice(-KEEP_TURNS))) this.#merge(value);
  }

  /** Takes over what another tab stored; a tab that shows another conversation stays with it. */
  #merge(value) {
    const other = value && JSON.stringify(value.session) !== JSON.stringify(this.session);
    if (other && this.turns.length) return;
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
    this.session = value?.session ?? newId();
    this.node = value?.node ?? this.node;
    this.turns = value?.turns ?? [];
    this.others = value?.others ?? [];
    this.earlier = value?.earlier ?? 0;
    this.thread = value?.thread ?? "";
  }

  /** Moves the turns from `at` on to `others`. */
  #putAside(at) {
    if (at < 0) return;
    for (const turn of this.turns) turn.follows = this.#before(turn);
    this.others.push(...this.turns.splice(at));
  }

  #before(turn) {
    return turn.follows ?? this.turns[this.turns.indexOf(turn) - 1]?.id ?? "";
  }

  #save() {
    clearTimeout(this.#saving);
    this.#saving = 0;
    const { session, node, turns, thread, key } = this;
    const whole = (most) => ({
      session,
      node,
      thread,
      turns: turns.slice(-most).map(withoutData),
      others: this.others.slice(-most).map(withoutData),
      earlier: this.earlier + Math.max(0, turns.length - most),
      ...(key && { name: this.name }),
    });
    if (!store(storageName(key), whole(KEEP_TURNS))) store(storageName(key), whole(KEEP_TURNS / 10));
  }

  #tell(type, turn) {
    this.dispatchEvent(new CustomEvent(type, { detail: turn }));
  }
}

const withoutData = (turn) =>
  turn.pictures ? { ...turn, pictures: turn.pictures.map(({ data, ...rest }) => rest) } : turn;

const ACT = {
  delta: (turn, data) => {
    turn.text += data.text ?? "";
    turn.waitingFor = "";
  },
  thought: (turn, data) => {
    turn.thoughts = ((turn.thoughts ?? "") + (data.text ?? "")).slice(-KEEP_THOUGHTS);
    turn.waitingFor = "";
  },
  waiting: (turn, data) => {
    turn.waitingFor = `Still waiting for ${data.for} (${data.seconds} s).`;
  },
  round: (turn, data) => {
    (turn.rounds ??= []).push({ ...data, after: turn.calls.length });
  },
  call: (turn, data) => {
    turn.calls.push({ call: data.call, name: data.name, args: data.args ?? {} });
  },
  piece: (turn, data) => {
    const call = turn.calls.find((known) => known.call === data.call);
    if (call && call.ok === undefined) call.result = ((call.result ?? "") + (data.text ?? "")).slice(-KEEP_RESULT);
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
      whole: result.length,
    });
  },
  work: (turn, data) => {
    if (data.work?.kind !== "plan") return;
    turn.plans = [...(turn.plans ?? []).filter((plan) => plan.by !== data.work.by), { by: data.work.by, todos: data.work.todos }];
  },
  notice: (turn, data) => {
    turn.notices.push(data.text ?? "");
  },
  done: (turn, data) => {
    turn.text = data.response ?? data.assistant_response ?? turn.text;
    turn.thread = data.thread ?? "";
    turn.model = data.model ?? "";
    turn.provider = data.provider ?? "";
    turn.seconds = data.seconds ?? null;
    turn.tokensIn = data.input_tokens ?? null;
    turn.tokensOut = data.output_tokens ?? null;
    turn.voice = data.voice_response ?? "";
    turn.twin = data.twin_response ?? "";
    turn.agentsUsed = data.agents_used;
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
