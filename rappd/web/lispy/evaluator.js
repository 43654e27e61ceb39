/**
 * The machine's loop: evaluation and application, on a stack of its own. It never calls itself, so a program's
 * depth costs no recursion, and it can stop before any step with everything it knows in its State. One step is
 * the evaluation of one form, or one application.
 */

import { Fault, passed, wrong } from "./errors.js";
import { BODY, CALL, COMPLEMENT, COMPOSE, EXPAND } from "./frames.js";
import { NoInput } from "./builtins/host.js";
import { checkMemory, FRAME_CELLS } from "./memory.js";
import { shortly } from "./printer.js";
import { BEGINS, RESUMES } from "./profiles.js";
import { APPLICATION_NEXT, APPLY, EVALUATE, FORM_NEXT } from "./state.js";
import { Builtin, Closure, Combined, Macro, Name, Scope } from "./values.js";

const GIVE = "give"; // next: `value` to the newest frame; never at rest in this

/**
 * Goes on until the program is done or failed, or a step after the one numbered `pause` would begin. A builtin
 * that charges for its items may pass `pause`; it is then the last to have begun. Returns whether the program
 * waits for input.
 */
export function advance(state, pause = Infinity) {
  if (state.mode !== EVALUATE && state.mode !== APPLY) return false;
  try {
    go(state, pause);
  } catch (error) {
    if (error instanceof NoInput) return true;
    if (!(error instanceof Fault)) throw error;
    state.fail(error);
  }
  return false;
}

function go(state, pause) {
  const { limits, stack } = state;
  const stop = Math.min(limits.max_steps, pause);
  const begins = BEGINS.get(state.profile);
  let depth = stack.reduce((count, frame) => count + (frame[0] === BODY ? 1 : 0), 0);
  let steps = state.steps;
  let phase = state.mode;
  let { form, scope, procedure, arguments: args } = state;
  let value = null;
  try {
    for (;;) {
      if (phase === EVALUATE) {
        if (steps >= stop) break;
        steps += 1;
        if (Array.isArray(form)) {
          if (form.length) {
            const head = form[0];
            const begin = head instanceof Name ? begins.get(head.text) : undefined;
            if (begin === undefined) {
              stack.push([CALL, form, scope, []]);
              form = head;
              continue;
            }
            value = begin(state, form, scope);
            if (value === FORM_NEXT) {
              ({ form, scope } = state);
              continue;
            }
          } else {
            value = null;
          }
        } else {
          value = form instanceof Name ? held(form.text, scope) : form;
        }
        phase = GIVE;
      }

      if (phase === GIVE) {
        if (!stack.length) {
          state.finish(value);
          return;
        }
        const frame = stack[stack.length - 1];
        const kind = frame[0];
        if (kind === CALL) {
          const [, call, around, done] = frame;
          scope = around;
          if (!done.length && value instanceof Macro) {
            stack[stack.length - 1] = [EXPAND, scope];
            procedure = value;
            args = call.slice(1);
          } else {
            done.push(value);
            // Names and constants among the arguments need no frame of their own.
            for (let index = done.length; index < call.length; index += 1) {
              form = call[index];
              if (Array.isArray(form) || steps >= stop) {
                phase = EVALUATE;
                break;
              }
              steps += 1;
              done.push(form instanceof Name ? held(form.text, scope) : form);
            }
            if (phase === EVALUATE) continue;
            stack.pop();
            procedure = done.shift();
            args = done;
          }
          phase = APPLY;
        } else if (kind === BODY) {
          const index = frame[2];
          if (index >= frame[1].length) {
            stack.pop();
            depth -= 1;
            continue;
          }
          frame[2] = index + 1;
          form = frame[1][index];
          scope = frame[3];
          phase = EVALUATE;
          continue;
        } else if (kind === EXPAND) {
          stack.pop();
          form = value;
          scope = frame[1];
          phase = EVALUATE;
          continue;
        } else {
          state.steps = steps;
          value = RESUMES[kind](state, frame, value);
          steps = state.steps;
          if (value === FORM_NEXT) {
            ({ form, scope } = state);
            phase = EVALUATE;
            continue;
          }
          if (value !== APPLICATION_NEXT) continue;
          ({ procedure, arguments: args } = state);
          phase = APPLY;
        }
      }

      if (steps >= stop) break;
      steps += 1;
      state.steps = steps;
      if (state.cells > limits.max_cells) {
        state.apply(procedure, args);
        checkMemory(state);
        steps = state.steps;
      }
      if (procedure instanceof Builtin) {
        if (args.length < procedure.least || args.length > procedure.most)
          throw wrongCount(procedure.name, args);
        value = procedure.run(state, args);
        steps = state.steps;
        if (value === APPLICATION_NEXT) {
          ({ procedure, arguments: args } = state);
          continue;
        }
      } else if (isApplicable(procedure, stack)) {
        scope = called(state, procedure, args);
        depth += 1;
        if (depth > state.peakCallDepth) {
          state.peakCallDepth = depth;
          if (depth > limits.max_call_depth) throw passed("call_depth", limits.max_call_depth, depth);
        }
        form = procedure.form;
        if (form.length > 2) {
          if (stack.length > Math.floor(limits.max_cells / FRAME_CELLS))
            throw passed("cells", limits.max_cells, limits.max_cells + 1);
          stack.push([BODY, form, 3, scope]);
          form = form[2];
          phase = EVALUATE;
          continue;
        }
        depth -= 1;
        value = null;
      } else if (procedure instanceof Combined) {
        value = applyCombined(state, procedure, args);
        if (value === APPLICATION_NEXT) {
          ({ procedure, arguments: args } = state);
          continue;
        }
      } else {
        throw wrong(`not a procedure: ${shortly(procedure)}`);
      }
      phase = GIVE;
    }
  } catch (error) {
    if (error instanceof NoInput) {
      // The application did not take place: it comes again.
      steps -= 1;
      state.steps = steps;
      state.mode = APPLY;
      state.apply(procedure, args);
      state.evaluate(null, state.globals);
    }
    throw error;
  } finally {
    state.steps = Math.max(steps, state.steps);
  }
  if (steps < pause) {
    state.steps = steps + 1;
    throw passed("steps", limits.max_steps, steps + 1);
  }
  state.mode = phase;
  [state.form, state.scope] = phase === EVALUATE ? [form, scope] : [null, state.globals];
  [state.procedure, state.arguments] = phase === APPLY ? [procedure, args] : [null, []];
}

function held(name, scope) {
  for (let around = scope; around !== null; around = around.parent) {
    const value = around.bindings.get(name);
    if (value !== undefined) return value;
  }
  throw wrong(`unbound variable: ${name}`);
}

/** A macro is applied only where its expansion is waited for. */
const isApplicable = (procedure, stack) =>
  procedure instanceof Closure &&
  (!(procedure instanceof Macro) || (stack.length > 0 && stack.at(-1)[0] === EXPAND));

/** The scope of a call's body. */
function called(state, closure, args) {
  const names = closure.parameters;
  if (args.length < names.length || (closure.rest === null && args.length > names.length))
    throw wrongCount(closure.name || "lambda", args);
  const bindings = new Map();
  for (let index = 0; index < names.length; index += 1) bindings.set(names[index], args[index]);
  if (closure.rest !== null) bindings.set(closure.rest, state.made(args.slice(names.length)));
  state.cells += 2 + bindings.size;
  return new Scope(bindings, closure.scope);
}

function applyCombined(state, procedure, args) {
  const { kind, parts } = procedure;
  if (kind === "partial") return state.apply(parts[0], [...parts.slice(1), ...args]);
  if (kind === "constantly") return parts[0];
  if (kind === "complement") {
    state.stack.push([COMPLEMENT]);
    return state.apply(parts[0], args);
  }
  if (!parts.length) {
    if (args.length !== 1) throw wrongCount("compose", args);
    return args[0];
  }
  if (parts.length > 1) state.stack.push([COMPOSE, parts, parts.length - 2]);
  return state.apply(parts.at(-1), args);
}

function wrongCount(name, args) {
  return wrong(`${name}: cannot take ${args.length} argument${args.length === 1 ? "" : "s"}`);
}
