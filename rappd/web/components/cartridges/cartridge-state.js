/**
 * A cartridge that is open in this page, and its program as it runs: a slice at a time, so that the page goes
 * on answering, and stopped between any two steps.
 */

import { agentId, checked, fileName, saved } from "../../lib/cartridges/file.js";
import { Frame } from "../../lib/cartridges/frame.js";
import { earlier } from "../../lib/cartridges/globals.js";
import { parse, written } from "../../lib/cartridges/json.js";
import { FUEL } from "./cartridge-words.js";

const SLICE_MS = 8;
const FIRST_SLICE = 500;
const LONGEST_SLICE = 400_000;

/**
 * `state`: ready (nothing is under way), running, paused, waiting (for an answer), done or failed. Says
 * `change` when it changes, and `moved` while it runs.
 */
export class Cartridge extends EventTarget {
  #turn = 0;
  #handed = []; // what was handed in since the frame began
  state = "ready";
  problem = null;
  fuel = FUEL[0];
  given = [];
  said = []; // what was said of the file when it was opened
  outcome = null;
  result = "";
  frame = null;
  stepped = false; // whether it stands still after a single step
  kept = null; // whether this browser could keep it; null before it tried

  /** `octets`: the file `name`. `signer`: what is known of who signed it. Throws BadCartridge. */
  constructor(name, octets, signer = null) {
    super();
    this.file = name;
    this.signer = signer;
    this.document = checked(parse(octets, name), name);
    this.first = this.document;
    this.notes = [];
    this.#lay();
  }

  /** The owner that the file names. */
  get name() {
    return agentId(this.document);
  }

  get steps() {
    return this.outcome?.usage.steps ?? 0;
  }

  get output() {
    return this.outcome?.stdout ?? "";
  }

  /** True while a frame is running or paused. */
  get underWay() {
    return ["running", "paused", "waiting"].includes(this.state);
  }

  /** Begins, or goes on. Resolves when it stands still. */
  async run() {
    if (!this.#begin()) return;
    this.stepped = false;
    this.#set("running");
    const turn = ++this.#turn; // paused and resumed meanwhile, another one goes on
    let slice = FIRST_SLICE;
    while (this.state === "running" && turn === this.#turn) {
      const began = performance.now();
      this.#advance(slice);
      if (this.outcome.status !== "paused") return this.#stopped();
      const took = Math.max(0.1, performance.now() - began);
      slice = Math.round(Math.min(LONGEST_SLICE, slice * Math.min(2, SLICE_MS / took)) + 1);
      this.dispatchEvent(new Event("moved"));
      await breath();
    }
  }

  /** One step. */
  step() {
    if (!this.#begin()) return;
    this.stepped = true;
    this.#advance(1);
    if (this.outcome.status === "paused") this.#set("paused");
    else this.#stopped();
  }

  pause() {
    if (this.state === "running") this.#set("paused");
  }

  /** Hands in a value, for now or for later; a program that waited for it goes on. */
  give(value) {
    if (!this.underWay) {
      this.given.push(value);
      return this.#set(this.state);
    }
    this.frame.give(value);
    this.#handed.push(value);
    if (this.state === "waiting") this.run();
    else this.#set(this.state);
  }

  /** As it was when it was opened; of a run that was paused then, from that run's beginning. */
  startOver() {
    this.document = new Map(this.first);
    const continuation = new Map(this.first.get("continuation") ?? []);
    if (continuation.delete("image")) this.document.set("continuation", continuation);
    this.given = [];
    this.#lay();
    this.dispatchEvent(new Event("change"));
  }

  /** `{name, text}` of the file that goes on from here, on whatever machine. Throws BadCartridge. */
  saved(now = new Date()) {
    const document = this.underWay ? this.frame.saved(now) : saved(this.document, now);
    return { name: fileName(document, now), text: written(document) };
  }

  /** Inputs that the program has not read yet. */
  get pending() {
    if (this.underWay) return this.frame.pending;
    return [...(this.document.get("continuation")?.get("pending_inputs") ?? []), ...this.given];
  }

  #lay() {
    this.frame = this.problem = this.outcome = null;
    this.result = "";
    this.state = "ready";
    this.notes = [];
    if (this.document.get("continuation")?.get("image")) {
      this.frame = new Frame(this.document);
      this.outcome = this.frame.outcome;
      this.notes = [...this.frame.notes];
      this.#handed = [];
      this.state = "paused";
    } else {
      earlier(this.document, (text) => this.notes.push(text));
    }
  }

  /** Sees to it that a frame is under way; false when there can be none. */
  #begin() {
    if (this.frame && this.underWay) return true;
    try {
      this.frame = new Frame(this.document, { inputs: this.given, fuel: this.fuel });
    } catch (found) {
      if (found.code !== "bad_cartridge") throw found;
      this.problem = found;
      this.#set("failed");
      return false;
    }
    this.problem = null;
    this.result = "";
    this.outcome = this.frame.outcome;
    this.#handed = this.given;
    this.given = [];
    return true;
  }

  #advance(steps) {
    try {
      this.outcome = this.frame.run(steps);
    } catch (found) {
      this.problem = { message: "The page could not go on with it.", todo: "Open it anew." };
      this.#set("failed");
      throw found;
    }
  }

  #stopped() {
    const { status, error, repr } = this.outcome;
    if (status === "waiting") return this.#set("waiting");
    if (status === "failed") {
      this.problem = error; // the document is as it was before
      if (error.resource === "steps") this.given = this.#handed; // with more fuel it may go well
      return this.#set("failed");
    }
    this.result = repr;
    this.document = this.frame.saved();
    this.notes = [...this.frame.notes];
    this.#set("done");
  }

  #set(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}

/** Lets the page draw, and do what it was asked meanwhile. (A timer would be slowed down.) */
function breath() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
