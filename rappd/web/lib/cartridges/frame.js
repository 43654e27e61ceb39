/**
 * One frame of a cartridge: its entry program once, on a machine that can be stopped before any step. The same
 * rules and the same bytes as `twins/cartridges/lispy_runner.py`.
 */

import { BadImage, Fault } from "../../lispy/errors.js";
import { limitsOf } from "../../lispy/limits.js";
import { Machine } from "../../lispy/machine.js";
import { read } from "../../lispy/reader.js";
import { isNamed, Name } from "../../lispy/values.js";
import { agentId, dialectOf, entryOf, saved } from "./file.js";
import { earlier, keepGlobals, overruled, valueOf, wired } from "./globals.js";
import { fromObjects, toObjects } from "./json.js";
import { BadCartridge } from "./problem.js";

const MAX_ECHOES = 5;

export class Frame {
  #document;
  #limits;
  #machine;

  /**
   * Begins the next frame of `document`, which stays as it is, or takes up the one that it was frozen in.
   * `inputs` join those that are pending; `fuel`: how many steps the frame may take, unless it is under way.
   * Throws BadCartridge.
   */
  constructor(document, { inputs = [], fuel = undefined } = {}) {
    this.#document = new Map(document);
    this.notes = overruled(document);
    const before = this.#document.get("continuation") ?? new Map();
    this.#continuation = new Map([
      ...before,
      ["frame", before.get("frame") ?? 0n],
      ["pending_inputs", [...(before.get("pending_inputs") ?? []), ...inputs]],
      ["last_state", before.get("last_state") ?? new Map()],
    ]);
    this.#limits = limitsOf(fuel === undefined ? {} : { max_steps: fuel });
    this.#machine = this.#thawed() ?? this.#fresh();
    this.outcome = this.#machine.outcome;
    this.fuel = this.#machine.limits.max_steps;
  }

  /** The number of this frame, over all runs. */
  get number() {
    return Number(this.#continuation.get("frame")) + 1;
  }

  /** Goes on for at most `steps` steps. Gives the outcome, as the machine has it. */
  run(steps) {
    this.outcome = this.#machine.run(steps);
    return this.outcome;
  }

  /** Hands in a value that the program asks for, now or later. */
  give(value) {
    this.#continuation.set("pending_inputs", [...this.#pending, value]);
    this.#machine.give(value);
  }

  /** Inputs that the program has not read yet. */
  get pending() {
    return this.#pending.slice(this.#pending.length - this.#machine.waiting);
  }

  /** Description of the current step: see `lispy/inspect.js`. */
  inspect() {
    return this.#machine.inspect();
  }

  /**
   * The cartridge as it is to be saved, dated `now`: with the whole machine where the frame is under way, with
   * what came of it where it is done. A frame that failed leaves no other than there was before.
   */
  saved(now = null) {
    const document = new Map(this.#document);
    const continuation = new Map(this.#continuation);
    const image = this.#machine.freeze();
    const pending = this.#pending.slice(this.#pending.length - image.inputs.length);
    document.set("continuation", continuation.set("pending_inputs", pending));
    if (this.outcome.status === "done") this.#end(document, continuation, image);
    else continuation.set("image", fromObjects(image));
    return saved(document, now);
  }

  #end(document, continuation, image) {
    const names = image.scopes[0].bindings.map(([name]) => name);
    const note = (text) => this.notes.includes(text) || this.notes.push(text);
    keepGlobals(document, this.#machine, names, note);
    const frame = continuation.get("frame") + 1n;
    const result = wired(this.#machine.value) ?? wired(null);
    continuation
      .set("frame", frame)
      .set("last_state", new Map([...continuation.get("last_state"), ["prev-result", result]]))
      .delete("image");
    const { repr, stdout } = this.outcome;
    const echo = new Map([
      ["frame", frame],
      ["result", repr],
      ["output", stdout],
    ]);
    document.set("echoes", [...(document.get("echoes") ?? []), echo].slice(-MAX_ECHOES));
  }

  get #continuation() {
    return this.#document.get("continuation");
  }

  set #continuation(now) {
    this.#document.set("continuation", now);
  }

  get #pending() {
    return this.#continuation.get("pending_inputs");
  }

  #thawed() {
    const image = this.#continuation.get("image");
    if (!image) return null;
    const machine = thaw(image);
    const inside = image.get("inputs");
    if (inside === null || inside.length > this.#pending.length)
      throw new BadCartridge(
        "The paused program waits for other inputs than the file has; nothing was run.",
        "Put them back, or take out the image.",
      );
    machine.give(...this.#pending.slice(inside.length));
    return machine;
  }

  #fresh() {
    const document = this.#document;
    const entry = entryOf(document);
    if (!entry) {
      const some = document.get("programs")?.size
        ? "does not say which of its programs runs"
        : "holds no program";
      throw new BadCartridge(`This cartridge ${some}; it can be kept, not run.`, "Name one as its entry.");
    }
    const bindings = earlier(document, (text) => this.notes.push(text));
    bindings.set("prev-result", valueOf(this.#continuation.get("last_state").get("prev-result")));
    bindings.set("echo-frame", this.#continuation.get("frame") + 1n);
    bindings.set("agent-id", agentId(document));
    bindings.set("prior-echo", document.get("echoes")?.at(-1) ?? null);
    const limits = this.#limits;
    const profile = dialectOf(document);
    const source = this.#program(document.get("programs").get(entry));
    return new Machine(source, { limits, profile, inputs: this.#pending, bindings, named: entry });
  }

  /** The program; with `(run (next-input))` behind it when it defines `run` and something waits. */
  #program(source) {
    if (!this.#pending.length) return source;
    let forms;
    try {
      forms = read(source, this.#limits);
    } catch (found) {
      if (!(found instanceof Fault)) throw found;
      return source; // the machine will say it, and where
    }
    return forms.some(definesRun) ? [...forms, [new Name("run"), [new Name("next-input")]]] : source;
  }
}

function thaw(image) {
  try {
    return Machine.thaw(toObjects(image));
  } catch (found) {
    if (!(found instanceof BadImage)) throw found;
    throw new BadCartridge(found.message, found.todo);
  }
}

function definesRun(form) {
  if (!Array.isArray(form) || form.length < 2 || !isNamed(form[0], "define")) return false;
  return isNamed(Array.isArray(form[1]) && form[1].length ? form[1][0] : form[1], "run");
}
