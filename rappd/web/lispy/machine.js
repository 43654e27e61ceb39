/**
 * A LisPy machine: a program that runs step by step, and can be carried away in between. The same language,
 * counts and images as `agents/runtimes/lispy/machine.py`, so that a program can move between the two.
 */

import { BadValue, Fault } from "./errors.js";
import { advance } from "./evaluator.js";
import { inSequence } from "./special-forms.js";
import { freeze, imageText } from "./image/serialize.js";
import { inspect } from "./inspect.js";
import { CEILING, limitsOf } from "./limits.js";
import { printed, TooLong } from "./printer.js";
import { BEGINS } from "./profiles.js";
import { read } from "./reader.js";
import { APPLY, DONE, EVALUATE, FAILED, FORM_NEXT, State } from "./state.js";
import { startingGlobals } from "./builtins/table.js";
import { thaw } from "./image/deserialize.js";
import { isProcedure } from "./values.js";
import { toWire } from "./value-codec.js";

const MOST_SHOWN = 1 << 20;

export class Machine {
  #state;

  /**
   * `source` is text, or forms that were read from one. Text that cannot be read is an outcome. `profile`: core
   * or rappterbook. `inputs` are values that the program takes with `(next-input)`; null: it cannot. `bindings`
   * (a Map): globals of its own, by name.
   */
  constructor(
    source,
    { limits = {}, profile = "core", inputs = null, bindings = new Map(), named = "<vm>" } = {},
  ) {
    if (source instanceof State) {
      this.#state = source;
      return;
    }
    if (!BEGINS.has(profile)) throw new BadValue(`There is no LisPy profile ${profile}.`);
    const scope = startingGlobals(inputs !== null);
    for (const [name, value] of bindings) scope.bindings.set(name, value);
    const state = new State(limitsOf(limits), profile, scope, inputs === null ? null : [...inputs]);
    this.#state = state;
    try {
      const forms = typeof source === "string" ? read(source, state.limits, named) : source;
      if (inSequence(state, forms, 0, scope) === FORM_NEXT) state.mode = EVALUATE;
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      state.fail(error);
    }
  }

  /** The machine that `freeze` wrote down. Throws BadImage, also for limits above `ceiling`. */
  static thaw(image, ceiling = CEILING) {
    return new Machine(thaw(image, ceiling));
  }

  /** The machine as it is now, as `lispy-image/1.0`. It can go on all the same. */
  freeze() {
    return freeze(this.#state);
  }

  /** The same as JSON text; the same machine always gives the same text. */
  freezeText() {
    return imageText(this.freeze());
  }

  /**
   * Goes on: to the end, until it waits, or for `maxSteps` steps. A builtin that goes through many items costs
   * many steps, and is not interrupted.
   */
  run(maxSteps = Infinity) {
    return this.#outcome(advance(this.#state, this.#state.steps + maxSteps));
  }

  /** One evaluation or application. */
  step() {
    return this.run(1);
  }

  /** The outcome so far, without a step. */
  get outcome() {
    return this.#outcome(false);
  }

  /**
   * `{status, stdout, usage}` and `{repr, wire}` or `{error}`; status is done, failed, paused or waiting (for
   * input), and wire is null for what has none.
   */
  #outcome(waits) {
    const state = this.#state;
    const status =
      state.mode === DONE ? "done" : state.mode === FAILED ? "failed" : waits ? "waiting" : "paused";
    const usage = { steps: state.steps, peak_call_depth: state.peakCallDepth };
    const stdout = state.output.join("");
    state.output = [stdout]; // so that asking after every step stays cheap
    const said = { status, stdout, usage };
    if (status === "done") {
      said.repr = shown(state.value);
      said.wire = wireOf(state.value);
    }
    if (status === "failed") said.error = state.fault.asJson();
    return said;
  }

  /** Hands in values for `next-input`. Throws BadValue where the program cannot ask for any. */
  give(...values) {
    if (this.#state.inputs === null) throw new BadValue("This program takes no input.");
    for (const value of values) this.#state.inputs.push(value);
  }

  /**
   * Makes the machine, which has ended, apply one of its procedures next. Its globals stay; steps, peak and
   * output start anew. Throws BadValue.
   */
  call(name, ...args) {
    const state = this.#state;
    const procedure = state.globals.bindings.get(name) ?? null;
    if (state.mode !== DONE && state.mode !== FAILED) throw new BadValue("The program is still running.");
    if (!isProcedure(procedure)) throw new BadValue(`The program has no procedure ${name}.`);
    state.steps = state.peakCallDepth = state.outputBytes = 0;
    state.output = [];
    state.value = state.fault = null;
    state.apply(procedure, args);
    state.mode = APPLY;
  }

  /** Number of inputs that were not read yet. */
  get waiting() {
    return this.#state.inputs?.length ?? 0;
  }

  /** Limits of the program. */
  get limits() {
    return this.#state.limits;
  }

  /** Result of the program; null before it is done. */
  get value() {
    return this.#state.value;
  }

  /** The value of a global; null where there is none. */
  lookup(name) {
    return this.#state.globals.bindings.get(name) ?? null;
  }

  /** Description of the current step, variables and usage, for people. */
  inspect() {
    return inspect(this.#state);
  }
}

function shown(value) {
  try {
    return printed(value, MOST_SHOWN);
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    return `(longer than ${MOST_SHOWN} characters)`;
  }
}

function wireOf(value) {
  try {
    return toWire(value);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return null;
  }
}
