/** State of the daemon: its name, whether it answers, whether this page may change things. */

import { ask, connection, openSession, remove } from "./api.js";
import { store, stored } from "./storage.js";

const CALM_MS = 15_000;
const ANXIOUS_MS = 2_000;
const LOOK_MS = 4_000;

class DaemonState extends EventTarget {
  name = stored("name", "rappd");
  health = null;
  awake = true;
  operator = false;
  reads = false; // what this user said before: the operator, and a phone its own
  #timer = 0;
  #looking = null;
  #ended = false;

  /** The first look; resolves when the daemon answered or plainly does not. */
  async start() {
    connection.addEventListener("lost", () => (this.#set({ awake: false }), this.#lookLater()));
    connection.addEventListener("answered", () => this.awake || this.look());
    connection.addEventListener("not-operator", () => this.#set({ operator: false, reads: false }));
    document.addEventListener("visibilitychange", () => document.hidden || this.look());
    const former = stored("proof"); // what a session was before it had a key
    store("proof", null);
    await this.look();
    if (former && this.awake && !this.operator) this.#end();
  }

  /**
   * Asks how the daemon is, now and then again. Says `change`; `operator` when that right, or the one to read, came or
   * went; `ended` when it went, or was gone, without being given up here; `back` when it answers again.
   */
  look() {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
      this.#lookLater();
    });
    return this.#looking;
  }

  async #look() {
    try {
      const [health, session] = await Promise.all(
        ["/health", "/operator/session"].map((path) => ask(path, { signal: AbortSignal.timeout(LOOK_MS) })),
      );
      store("name", health.name || this.name);
      this.#set({ awake: true, health, name: health.name || this.name, ...rightsOf(session) });
      if (session.ended) this.#end();
    } catch (found) {
      if (found.code === undefined) throw found;
      this.#set({ awake: !found.away });
    }
  }

  /** Trades the key of a start link for the operator's session. Raises `Problem` when it is too old. */
  async open(key) {
    const session = await openSession(key);
    this.#set(rightsOf(session));
  }

  /** Ends the operator's session; the page still talks. */
  async close() {
    await remove("/operator/session");
    this.#set({ operator: false, reads: false });
  }

  /** The command that gives a new operator's link, as this machine's shell can run it. */
  get command() {
    return `${this.health?.command || "rappd"} open`;
  }

  /** The model in use: "Ollama, qwen3" or "none (keyword matching)". */
  get thinking() {
    const provider = this.health?.provider;
    if (!provider) return "";
    if (provider.state === "no model") return "none (keyword matching)";
    const model = provider.model || (provider.state === "looking" ? "looking for a model" : "no model");
    return [provider.name, model === provider.name ? "" : model].filter(Boolean).join(", ");
  }

  #lookLater() {
    clearTimeout(this.#timer);
    if (!document.hidden) this.#timer = setTimeout(() => this.look(), this.awake ? CALM_MS : ANXIOUS_MS);
  }

  #set(changes) {
    const was = { awake: this.awake, operator: this.operator, reads: this.reads, text: this.#text() };
    Object.assign(this, changes);
    if (this.#text() !== was.text) this.dispatchEvent(new Event("change"));
    if (this.operator) this.#ended = false;
    if (this.operator !== was.operator || this.reads !== was.reads) this.dispatchEvent(new Event("operator"));
    if (this.awake && !was.awake) this.dispatchEvent(new Event("back"));
  }

  /** Says `ended` once, until the page has the right again. */
  #end() {
    if (!this.#ended) this.dispatchEvent(new Event("ended"));
    this.#ended = true;
  }

  #text() {
    return JSON.stringify([this.name, this.awake, this.operator, this.health]);
  }
}

const rightsOf = ({ operator, reads }) => ({ operator: Boolean(operator), reads: Boolean(operator || reads) });

export const daemon = new DaemonState();
