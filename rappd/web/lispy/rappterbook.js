/** The forms that the profile `rappterbook` has beyond the language: when, unless, pipe, dotimes, do. */

import { wrong } from "./errors.js";
import { bindingOf, check, innerScope, inSequence } from "./special-forms.js";
import { DOTIMES, PIPE, UNLESS, WHEN } from "./frames.js";
import { isNamed, isTrue, Name } from "./values.js";

const QUOTE = new Name("quote");

function beginWhen(state, form, scope) {
  check(form, form.length >= 2);
  state.stack.push([form[0].text === "when" ? WHEN : UNLESS, form, scope]);
  return state.evaluate(form[1], scope);
}

function resumeWhen(state, frame, value) {
  state.stack.pop();
  return isTrue(value) === (frame[0] === WHEN) ? inSequence(state, frame[1], 2, frame[2]) : null;
}

const beginDo = () => null;

function beginPipe(state, form, scope) {
  check(form, form.length >= 2);
  if (form.length > 2) state.stack.push([PIPE, form, 2, scope]);
  return state.evaluate(form[1], scope);
}

/** `(f a)` is given the value before `a`; a procedure, or what makes one, is given it alone. */
function resumePipe(state, frame, value) {
  const [, form, index, scope] = frame;
  if (index + 1 >= form.length) state.stack.pop();
  else frame[2] = index + 1;
  const stage = form[index];
  const given = [QUOTE, value];
  if (Array.isArray(stage) && stage.length && !isNamed(stage[0], "lambda"))
    return state.evaluate(state.made([stage[0], state.made(given), ...stage.slice(1)]), scope);
  return state.evaluate(state.made([stage, state.made(given)]), scope);
}

function beginDotimes(state, form, scope) {
  check(form, form.length >= 3);
  state.stack.push([DOTIMES, form, scope, 0, -1]);
  return state.evaluate(bindingOf(form, form[1])[1], scope);
}

/** `(dotimes (i n) body …)`: for i from 0 below n; nil. */
function resumeDotimes(state, frame, value) {
  const [, form, scope, index] = frame;
  if (frame[4] < 0) {
    if (typeof value !== "bigint" || value < 0n) throw wrong("dotimes: the count must be a whole number");
    const count = Number(value);
    state.fits(count);
    frame[4] = count;
  }
  if (index >= frame[4]) {
    state.stack.pop();
    return null;
  }
  frame[3] = index + 1;
  state.charge(1);
  const name = bindingOf(form, form[1])[0].text;
  return inSequence(state, form, 2, innerScope(state, new Map([[name, BigInt(index)]]), scope));
}

export const BEGINS = new Map([
  ["when", beginWhen],
  ["unless", beginWhen],
  ["dotimes", beginDotimes],
  ["pipe", beginPipe],
  ["do", beginDo],
]);

export const RESUMES = new Map([
  [WHEN, resumeWhen],
  [UNLESS, resumeWhen],
  [PIPE, resumePipe],
  [DOTIMES, resumeDotimes],
]);
