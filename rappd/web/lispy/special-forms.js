/**
 * The special forms: how each begins, and how it goes on when a value it waits for is there.
 *
 * `BEGINS.get(name)(state, form, scope)` and `RESUMES.get(kind)(state, frame, value)` return the form's value,
 * or what `state.evaluate` returns. A resumed frame is the newest on the stack, and takes itself off.
 */

import { Fault, malformed, wrong } from "./errors.js";
import { AND, COND, DEFINE, IF, LET, LET_STAR, OR, SEQUENCE, SET } from "./frames.js";
import { LANGUAGE } from "./state.js";
import { Closure, isNamed, isTrue, Macro, Name, Scope } from "./values.js";

/** Evaluates the forms from `form[start]`; the last one's value, or nil, is theirs. */
export function inSequence(state, form, start, scope) {
  if (start >= form.length) return null;
  if (start + 1 < form.length) state.stack.push([SEQUENCE, form, start + 1, scope]);
  return state.evaluate(form[start], scope);
}

function beginQuote(state, form) {
  check(form, form.length === 2);
  return form[1];
}

function beginIf(state, form, scope) {
  check(form, form.length === 3 || form.length === 4);
  state.stack.push([IF, form, scope]);
  return state.evaluate(form[1], scope);
}

function resumeIf(state, frame, value) {
  state.stack.pop();
  const [, form, scope] = frame;
  if (isTrue(value)) return state.evaluate(form[2], scope);
  return form.length > 3 ? state.evaluate(form[3], scope) : null;
}

const beginCond = (state, form, scope) => tryClause(state, form, 1, scope);

function tryClause(state, form, index, scope) {
  if (index >= form.length) return null;
  const clause = form[index];
  check(form, Array.isArray(clause) && clause.length > 0);
  if (isNamed(clause[0], "else")) {
    check(form, index === form.length - 1);
    return inSequence(state, clause, 1, scope);
  }
  state.stack.push([COND, form, index, scope]);
  return state.evaluate(clause[0], scope);
}

function resumeCond(state, frame, value) {
  state.stack.pop();
  const [, form, index, scope] = frame;
  if (!isTrue(value)) return tryClause(state, form, index + 1, scope);
  const clause = form[index];
  check(form, Array.isArray(clause) && clause.length > 0);
  return clause.length > 1 ? inSequence(state, clause, 1, scope) : value;
}

function beginDefine(state, form, scope) {
  check(form, form.length >= 3);
  if (form[1] instanceof Name) {
    check(form, form.length === 3);
    state.stack.push([DEFINE, form, scope]);
    return state.evaluate(form[2], scope);
  }
  const closure = procedureOf(state, Closure, form, scope);
  bind(state, scope, form[1][0], closure);
  return closure;
}

function resumeDefine(state, frame, value) {
  state.stack.pop();
  const [, form, scope] = frame;
  bind(state, scope, nameIn(form, form[1]), value);
  return value;
}

function beginSet(state, form, scope) {
  check(form, form.length === 3);
  nameIn(form, form[1]);
  state.stack.push([SET, form, scope]);
  return state.evaluate(form[2], scope);
}

function resumeSet(state, frame, value) {
  state.stack.pop();
  const name = nameIn(frame[1], frame[1][1]).text;
  for (let scope = frame[2]; scope !== null; scope = scope.parent) {
    if (scope.bindings.has(name)) {
      scope.bindings.set(name, value);
      return value;
    }
  }
  throw wrong(`unbound variable: ${name}`);
}

function beginLambda(state, form, scope) {
  check(form, form.length >= 2);
  state.cells += 4;
  return new Closure(form, scope);
}

function beginDefineMacro(state, form, scope) {
  check(form, form.length >= 3);
  if (form[1] instanceof Name) {
    const made = form[2];
    check(form, form.length === 3 && Array.isArray(made) && made.length >= 2 && isNamed(made[0], "lambda"));
    state.cells += 4;
    bind(state, scope, form[1], new Macro(made, scope));
  } else {
    const macro = procedureOf(state, Macro, form, scope);
    bind(state, scope, form[1][0], macro);
  }
  return null;
}

function beginLet(state, form, scope) {
  const bindings = bindingsOf(form);
  if (!bindings.length) return inSequence(state, form, 2, innerScope(state, new Map(), scope));
  state.stack.push([LET, form, scope, []]);
  return state.evaluate(bindingOf(form, bindings[0])[1], scope);
}

function resumeLet(state, frame, value) {
  const [, form, scope, done] = frame;
  const bindings = bindingsOf(form);
  done.push(value);
  if (done.length < bindings.length) return state.evaluate(bindingOf(form, bindings[done.length])[1], scope);
  state.stack.pop();
  const bound = new Map(bindings.map((binding, index) => [bindingOf(form, binding)[0].text, done[index]]));
  return inSequence(state, form, 2, innerScope(state, bound, scope));
}

function beginLetStar(state, form, scope) {
  const bindings = bindingsOf(form);
  if (!bindings.length) return inSequence(state, form, 2, innerScope(state, new Map(), scope));
  state.stack.push([LET_STAR, form, 0, scope]);
  return state.evaluate(bindingOf(form, bindings[0])[1], scope);
}

function resumeLetStar(state, frame, value) {
  const [, form, index, around] = frame;
  const bindings = bindingsOf(form);
  check(form, index < bindings.length);
  const name = bindingOf(form, bindings[index])[0].text;
  const scope = (frame[3] = innerScope(state, new Map([[name, value]]), around));
  frame[2] = index + 1;
  if (index + 1 < bindings.length) return state.evaluate(bindingOf(form, bindings[index + 1])[1], scope);
  state.stack.pop();
  return inSequence(state, form, 2, scope);
}

const beginBegin = (state, form, scope) => inSequence(state, form, 1, scope);

function resumeSequence(state, frame) {
  const [, form, index, scope] = frame;
  if (index + 1 >= form.length) state.stack.pop();
  else frame[2] = index + 1;
  return state.evaluate(form[index], scope);
}

const beginAnd = (state, form, scope) => (form.length > 1 ? nextOf(state, AND, form, 1, scope) : true);

const beginOr = (state, form, scope) => (form.length > 1 ? nextOf(state, OR, form, 1, scope) : false);

function nextOf(state, kind, form, index, scope) {
  if (index + 1 < form.length) state.stack.push([kind, form, index + 1, scope]);
  return state.evaluate(form[index], scope);
}

function resumeAnd(state, frame, value) {
  state.stack.pop();
  return isTrue(value) ? nextOf(state, AND, frame[1], frame[2], frame[3]) : value;
}

function resumeOr(state, frame, value) {
  state.stack.pop();
  return isTrue(value) ? value : nextOf(state, OR, frame[1], frame[2], frame[3]);
}

function unsupported(state, form) {
  throw new Fault("unsupported", `${form[0].text} is not supported by ${LANGUAGE}`);
}

/** Ends the program if the form is not written as it must be. */
export function check(form, isWellFormed) {
  if (!isWellFormed) throw malformed(`${form[0].text}: malformed`);
}

function nameIn(form, name) {
  check(form, name instanceof Name);
  return name;
}

/** The bindings of a `let`. */
function bindingsOf(form) {
  check(form, form.length >= 2 && Array.isArray(form[1]));
  return form[1];
}

/** A name and a form, of all there is in `form`. */
export function bindingOf(form, binding) {
  check(form, Array.isArray(binding) && binding.length === 2 && binding[0] instanceof Name);
  return binding;
}

function bind(state, scope, name, value) {
  state.cells += 1;
  scope.bindings.set(name.text, value);
}

/** A new scope within `scope`. */
export function innerScope(state, bindings, scope) {
  state.cells += 2 + bindings.size;
  return new Scope(bindings, scope);
}

function procedureOf(state, Kind, form, scope) {
  const target = form[1];
  check(form, Array.isArray(target) && target.length > 0 && target[0] instanceof Name);
  state.cells += 4;
  return new Kind(form, scope);
}

export const BEGINS = new Map([
  ["quote", beginQuote],
  ["if", beginIf],
  ["cond", beginCond],
  ["define", beginDefine],
  ["set!", beginSet],
  ["lambda", beginLambda],
  ["let", beginLet],
  ["let*", beginLetStar],
  ["begin", beginBegin],
  ["and", beginAnd],
  ["or", beginOr],
  ["define-macro", beginDefineMacro],
  ["do", unsupported],
  ["quasiquote", unsupported],
  ["unquote", unsupported],
  ["unquote-splicing", unsupported],
]);

export const RESUMES = new Map([
  [SEQUENCE, resumeSequence],
  [IF, resumeIf],
  [COND, resumeCond],
  [DEFINE, resumeDefine],
  [SET, resumeSet],
  [LET, resumeLet],
  [LET_STAR, resumeLetStar],
  [AND, resumeAnd],
  [OR, resumeOr],
]);
