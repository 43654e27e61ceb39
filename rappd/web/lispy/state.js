/** The registers of one LisPy machine, and what it counts. See `agents/runtimes/lispy/machine_state.py`. */

import { byteLength, length } from "./characters.js";
import { passed, wrong } from "./errors.js";
import { bitLength, SMALL } from "./number-format.js";
import { Pair } from "./values.js";

export const LANGUAGE = "lispy-core@1";

export const EVALUATE = "evaluate"; // next: `form` in `scope`
export const APPLY = "apply"; // next: `procedure` to `arguments`
export const DONE = "done"; // there is a `value`
export const FAILED = "failed"; // there is a `fault`

/** Stand for a value that is not there yet: the state says which form, or application, gives it. */
export const FORM_NEXT = Symbol("form next");
export const APPLICATION_NEXT = Symbol("application next");

/** Everything a machine consists of; between two steps, nothing else is needed to go on. */
export class State {
  constructor(limits, profile, bound, inputs) {
    this.limits = limits;
    this.profile = profile;
    this.globals = bound;
    this.inputs = inputs;
    this.mode = DONE;
    this.form = null;
    this.scope = bound;
    this.procedure = null;
    this.arguments = [];
    this.value = null;
    this.fault = null;
    this.stack = [];
    this.steps = 0;
    this.peakCallDepth = 0;
    this.cells = 0;
    this.output = [];
    this.outputBytes = 0;
  }

  /** Makes the value of `form` the one that the newest frame waits for. */
  evaluate(form, scope) {
    this.form = form;
    this.scope = scope;
    return FORM_NEXT;
  }

  /** Makes what `procedure` gives for `args` the value that the newest frame waits for. */
  apply(procedure, args) {
    this.procedure = procedure;
    this.arguments = args;
    return APPLICATION_NEXT;
  }

  /** Counts steps beyond the one that each evaluation and application costs. */
  charge(steps) {
    this.steps += steps;
    const limit = this.limits.max_steps;
    if (this.steps > limit) {
      this.steps = limit + 1;
      throw passed("steps", limit, limit + 1);
    }
  }

  /** Charges for going through `items` where the published count has no charge: 1 for every 64. */
  work(items) {
    if (items >= 64) this.charge(Math.floor(items / 64));
  }

  /** `text`, and the charge for going through it. */
  reading(text) {
    if (text.length >= 1024) {
      const size = length(text);
      if (size >= 1024) this.work(size >> 4);
    }
    return text;
  }

  /** Ends the program if a collection of so many items would be too large. */
  fits(items) {
    const limit = this.limits.max_collection_items;
    if (items > limit) throw passed("collection_items", limit, Math.min(items, Number.MAX_SAFE_INTEGER));
  }

  /** A new list of the program's: checked and counted. */
  made(items) {
    this.fits(items.length);
    this.cells += 1 + items.length;
    return items;
  }

  /** A new map of the program's: checked and counted. */
  madeMap(entries) {
    this.fits(entries.size);
    this.cells += 1 + 2 * entries.size;
    return entries;
  }

  /** A new string of the program's: checked and counted. */
  madeText(text) {
    if (text.length >= 32) {
      const size = length(text);
      this.fits(size);
      this.cells += size >> 5;
    } else if (text.length > this.limits.max_collection_items) {
      this.fits(length(text));
    }
    return text;
  }

  /** A new pair of the program's: counted. */
  madePair(car, cdr) {
    this.cells += 3;
    return new Pair(car, cdr);
  }

  /** A new integer of the program's: checked, and charged for when it is long. */
  madeInteger(number) {
    if (-SMALL < number && number < SMALL) return number;
    const bits = bitLength(number);
    const limit = this.limits.max_integer_bits;
    if (bits > limit) throw passed("integer_bits", limit, bits);
    this.cells += bits >> 8;
    if (bits >= 1024) this.work(bits >> 2);
    return number;
  }

  /** `number`, unless it is an infinity or not a number. */
  finite(name, number) {
    if (!Number.isFinite(number)) throw wrong(`${name}: the result is out of range`);
    return number;
  }

  /** Appends to the output. Throws Fault when there is too much of it. */
  write(text) {
    const size = this.outputBytes + byteLength(text);
    if (size > this.limits.max_output_bytes) throw passed("output_bytes", this.limits.max_output_bytes, size);
    this.outputBytes = size;
    this.output.push(text);
    this.reading(text);
  }

  /** Ends the program with `fault`. */
  fail(fault) {
    this.mode = FAILED;
    this.fault = fault;
    this.stack.length = 0;
    this.#letGo();
  }

  /** Ends the program with `value`. */
  finish(value) {
    this.mode = DONE;
    this.value = value;
    this.#letGo();
  }

  #letGo() {
    this.form = this.procedure = null;
    this.scope = this.globals;
    this.arguments = [];
  }
}
