/** Sends a turn and reads its answer, across lost connections and reloads; stops it on request. */

import { Problem, follow, post } from "../../lib/api.js";
import { allConversations } from "./conversation.js";
import { daemon } from "../../lib/daemon-state.js";
import { announce } from "../../lib/live-region.js";
import { routesOf } from "../twins/twins-state.js";
import { speak } from "./voice.js";

const WAITS_MS = [500, 1000, 2000, 4000, 8000];
const STOP_MS = 4000;
const EMPTY_ENDS = 4;
const SEEN_BY_ALL_MS = 1000; // what one tab stores reaches the others later than a lock that it gives up

const SUSPENDED = new DOMException("Another page reads on.", "AbortError");

const reading = new Map(); // turn id → AbortController of the stream being read

/**
 * Sends the user's message with `pictures`, or `instead` of an earlier one, with that one's. Does nothing while an answer
 * is running.
 */
export function send(conversation, text, { instead = null, pictures = [] } = {}) {
  if (conversation.current) return null;
  const turn = conversation.add(text, { instead, pictures });
  carry(conversation, turn);
  return turn;
}

/** Resumes turns that a reload or another tab interrupted. */
export function resume() {
  for (const conversation of allConversations()) {
    const turn = conversation.current;
    if (turn && !reading.has(turn.id)) carry(conversation, turn);
  }
}

/** Leaves the answers under way to another page of this browser, until `resume`. */
export function suspend() {
  for (const control of reading.values()) control.abort(SUSPENDED);
}

/** Stops the running answer, on the daemon too. */
export async function stop(conversation) {
  const turn = conversation.current;
  if (!turn || turn.state === "stopping") return;
  turn.state = "stopping";
  conversation.changed(turn, true);
  const giveUp = setTimeout(() => reading.get(turn.id)?.abort(), STOP_MS);
  try {
    await cancelOnDaemon(turn);
  } finally {
    clearTimeout(giveUp);
    setTimeout(() => reading.get(turn.id)?.abort(), STOP_MS / 4);
  }
}

/** One tab reads a turn at a time; the others see it through what is kept. */
async function carry(conversation, turn) {
  if (!navigator.locks) return read(conversation, turn);
  return navigator.locks.request(`rappd turn ${turn.id}`, async () => {
    conversation.reread(); // the tab that read until now may have stored the end only there
    const now = conversation.turns.find((known) => known.id === turn.id);
    if (!now || now !== conversation.current) return;
    await read(conversation, now);
    await pause(SEEN_BY_ALL_MS);
  });
}

async function read(conversation, turn) {
  const control = new AbortController();
  reading.set(turn.id, control);
  conversation.carried = turn;
  const left = () => conversation.turns.includes(turn) || control.abort(); // the daemon goes on with it
  conversation.addEventListener("replaced", left);
  let attempt = 0;
  let emptyEnds = 0;
  try {
    while (turn === conversation.current && !control.signal.aborted) {
      const before = turn.lastId;
      try {
        if (await readOnce(conversation, turn, emptyEnds === 0, control.signal)) break;
        emptyEnds = turn.lastId === before ? emptyEnds + 1 : 0;
        if (turn.state === "stopping" || emptyEnds >= EMPTY_ENDS) break;
      } catch (found) {
        if (found.name === "AbortError") break;
        if (!(found instanceof Problem)) throw found;
        if (!found.away) {
          fail(turn, found);
          break;
        }
      }
      if (turn.lastId !== before) attempt = 0;
      await pause(WAITS_MS[Math.min(attempt++, WAITS_MS.length - 1)], control.signal);
    }
  } finally {
    reading.delete(turn.id);
    conversation.removeEventListener("replaced", left);
    if (conversation.carried === turn) conversation.carried = null;
    if (conversation.turns.includes(turn) && control.signal.reason !== SUSPENDED) finish(conversation, turn);
  }
}

/**
 * Reads the stream, from where it was left if `onward`; true when the turn is over. From the start is
 * for a daemon that restarted and numbers its events anew: what was seen before changes nothing.
 */
async function readOnce(conversation, turn, onward, signal) {
  const headers = turn.lastId && onward ? { "Last-Event-ID": turn.lastId } : {};
  const json = await conversation.request(turn);
  const path = `${routesOf(conversation.key)}/chat/stream`;
  for await (const event of follow(path, { method: "POST", json, headers, signal })) {
    if (conversation.take(turn, event)) return true;
  }
  return false;
}

function finish(conversation, turn) {
  if (turn.state === "stopping") turn.state = "stopped";
  else if (turn.state === "sending" || turn.state === "answering") {
    fail(turn, { message: `${conversation.name} dropped this answer.`, todo: "Ask again.", code: "dropped" });
  }
  conversation.changed(turn, true);
  announceAnswer(conversation.name, turn);
}

function announceAnswer(name, turn) {
  if (turn.state === "done") {
    announce(`${name}: ${plainly(turn.text)}`);
    if (turn.voice && daemon.health?.voice_mode) speak(turn.voice);
  } else if (turn.state === "stopped") announce("Stopped.");
  else announce(`${turn.problem.error} ${turn.problem.todo}`);
}

function fail(turn, problem) {
  turn.state = turn.state === "stopping" ? "stopped" : "failed";
  turn.problem = { error: problem.message, todo: problem.todo, code: problem.code };
}

/** Asks until the daemon heard it: a stop that got lost would be no stop. */
async function cancelOnDaemon(turn) {
  for (const wait of WAITS_MS) {
    try {
      await post("/chat/cancel", { turn_id: turn.id });
      return;
    } catch (found) {
      if (!(found instanceof Problem) || !found.away) return;
      await pause(wait);
    }
  }
}

/** Markdown's marks read badly aloud. */
function plainly(text) {
  return text.replace(/```[a-z]*\n?|[*_`#>]|\[([^\]]*)\]\([^)]*\)/g, "$1").trim();
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    daemon.addEventListener("back", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
