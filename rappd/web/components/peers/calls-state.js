/** Calls that this page made to other machines: running, waiting, or answered. */

import { Problem } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { nameOf, selectorOf } from "../machines/machine-words.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { calls, threads } from "../../lib/operations.js";

const KEEP = 50;
const PATIENCE = 30; // seconds until an answer is no longer waited for here; it comes by itself then
const ENDS = { DONE: "done", ERROR: "failed" };

class PeerCalls extends EventTarget {
  /**
   * The latest first: `{id, key, name, what, agent, began, state, …}`. `state`: asking, then as the daemon
   * says it: done, failed, queued (it is away), accepted (it works on it still).
   */
  rows = [];

  constructor() {
    super();
    daemonEvents.addEventListener("event", ({ detail }) => this.#heard(detail));
    daemon.addEventListener("back", () => this.#catchUp());
    document.addEventListener("visibilitychange", () => document.hidden || this.#catchUp());
  }

  /** Asks the machine of `row`: its brainstem, or one `agent` or `twin` of it. Resolves to the call, told how it went. */
  async begin(row, { text, agent = "", twin = "" }) {
    const call = {
      id: crypto.randomUUID(),
      key: selectorOf(row),
      name: nameOf(row),
      what: text,
      agent,
      twin,
      began: Date.now(),
      state: "asking",
    };
    this.rows = [call, ...this.rows].slice(0, KEEP);
    this.#changed(call);
    const asked = {
      peer: call.key,
      text,
      id: call.id,
      wait: PATIENCE,
      ...(agent && { agent }),
      ...(twin && { twin }),
    };
    try {
      const { id, peer, ...came } = (await calls.ask(asked)).call;
      if (call.state === "asking") Object.assign(call, came);
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      Object.assign(call, { state: "failed", error: found.message, do: found.todo });
    }
    this.#changed(call);
    return call;
  }

  /** Calls with one machine. */
  with(key) {
    return this.rows.filter((call) => call.key === key);
  }

  /** Calls under way. */
  get underWay() {
    return this.rows.filter(({ state }) => state === "asking");
  }

  /** An answer that was not waited for, as the daemon wrote it down. */
  #heard({ id, verb, data = {} }) {
    const call = this.rows.find((one) => one.id === id && ["queued", "accepted"].includes(one.state));
    if (!call || !ENDS[verb]) return;
    Object.assign(call, { state: ENDS[verb], late: true });
    if (verb === "DONE") call.result = data.result ?? data.response ?? "";
    else if (data.reason === "dropped") call.error = "It was dropped here.";
    else Object.assign(call, { error: data.msg, do: data.do });
    this.#changed(call);
  }

  /** Fetches answers that arrived while the event stream was closed. */
  async #catchUp() {
    for (const { thread } of this.rows.filter(({ state }) => ["queued", "accepted"].includes(state))) {
      try {
        for (const event of (await threads.show({ thread })).events) this.#heard(event);
      } catch (found) {
        if (!(found instanceof Problem)) throw found; // it is looked for again
      }
    }
  }

  #changed(call) {
    this.dispatchEvent(new CustomEvent("change", { detail: call }));
  }
}

export const peerCalls = new PeerCalls();
