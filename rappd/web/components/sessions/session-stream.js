/** One session as this page sees it: its events as they come, who is here, and sentences of the owner. */

import { follow } from "../../lib/api.js";
import * as operations from "../../lib/operations.js";

const WAITS_MS = [500, 1000, 2000, 5000];
const TYPING_MS = 4000;

/** Says `change` after each news. `close()` ends it. */
export class SessionStream extends EventTarget {
  events = [];
  here = [];
  participants = [];
  closed = false;
  current = true;
  connected = false;
  typing = "";
  underway = null;
  #timer = 0;
  #control = new AbortController();
  #lastSeq = 0;

  constructor(id) {
    super();
    this.id = id;
  }

  /** Follows the session until `close`. Raises `Problem` where there is no such session. */
  async run() {
    const { signal } = this.#control;
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      try {
        if (!this.participants.length) await this.#learn();
        for await (const { data } of follow(`/sessions/${encodeURIComponent(this.id)}/stream?after=${this.#lastSeq}`, { signal })) {
          attempt = 0;
          this.#take(data);
        }
      } catch (found) {
        if (found.name === "AbortError") return;
        if (!found.away) throw found;
      }
      this.#change({ connected: false });
      await new Promise((resolve) => setTimeout(resolve, WAITS_MS[Math.min(attempt, WAITS_MS.length - 1)]));
    }
  }

  /** Asks `to`. Raises `Problem`; sent again with the same `id`, it is asked once. `via` "mic" interrupts a workflow. */
  say(text, to, id, via = "") {
    return operations.sessions.say({ id: this.id, text, to, event_id: id, via });
  }

  /** Pauses, resumes or aborts the workflow that runs here. */
  control(action) {
    return operations.workflows.control({ action, session: this.id });
  }

  /** Takes all phones here. */
  async bringPhones() {
    await operations.sessions.reopen({ id: this.id });
    this.#change({ current: true });
  }

  clear() {
    return operations.sessions.clear({ id: this.id });
  }

  end() {
    return operations.sessions.close({ id: this.id });
  }

  close() {
    this.#control.abort();
  }

  async #learn() {
    const { participants, session } = await operations.sessions.show({ id: this.id, after: Number.MAX_SAFE_INTEGER });
    this.#change({ participants, current: session.current, closed: session.closed });
  }

  #take(message) {
    if (message.type === "presence") this.#change({ here: message.here, connected: true });
    else if (message.type === "participants") this.#change({ participants: message.participants });
    else if (message.type === "typing") this.#isTyping(message.by);
    else if (message.type === "events") this.#seen(message);
  }

  #isTyping(name) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#change({ typing: "" }), TYPING_MS);
    this.#change({ typing: name });
  }

  #seen(message) {
    this.#lastSeq = message.last_seq;
    const all = [...this.events, ...message.events];
    const cleared = all.findLastIndex(({ kind }) => kind === "clear");
    this.#change({
      connected: true,
      underway: message.events.findLast(({ workflow }) => workflow)?.workflow ?? this.underway,
      typing: message.events.some(({ by }) => by === this.typing) ? "" : this.typing,
      events: cleared > 0 ? all.slice(cleared) : all,
      closed: this.closed || message.events.some(({ kind }) => kind === "session_end"),
    });
  }

  #change(fields) {
    Object.assign(this, fields);
    this.dispatchEvent(new Event("change"));
  }
}
