/** When two values are equal. */

import { isNumber, Name, Pair } from "./values.js";

/** `eq?`: the very same object, or the same atom; 1 and 1.0 differ. */
export function isSame(a, b) {
  if (a === b) return true; // 0.0 and -0.0 too
  return a instanceof Name && b instanceof Name && a.text === b.text;
}

/**
 * `equal?`: by content. 1 equals 1.0; no boolean is a number, no symbol a string, no pair a list. Two values
 * that share their parts are compared part by part once, so that the work stays below their size.
 */
export function areEqual(state, a, b) {
  if (!hasParts(a) || !hasParts(b)) return areEqualAtoms(a, b);
  const looked = { count: 0 };
  const are = compare(a, b, looked);
  if (a.constructor === b.constructor) state.work(looked.count);
  return are;
}

const hasParts = (value) => Array.isArray(value) || value instanceof Pair || value instanceof Map;

const areEqualAtoms = (a, b) => isSame(a, b) || (isNumber(a) && isNumber(b) && a == b); // eslint-disable-line eqeqeq

function compare(first, second, looked) {
  const classes = new Map(); // of objects found equal as far as one has looked; each points to another
  const waiting = [[first, second]];
  while (waiting.length) {
    const [a, b] = waiting.pop();
    if (a === b) continue;
    looked.count += 1;
    if (!hasParts(a) || !hasParts(b)) {
      if (!areEqualAtoms(a, b)) return false;
      continue;
    }
    if (a.constructor !== b.constructor) return false;
    const [one, other] = [classOf(classes, a), classOf(classes, b)];
    if (one === other) continue;
    classes.set(one, other);
    if (a instanceof Pair) {
      waiting.push([a.cdr, b.cdr], [a.car, b.car]);
    } else if (Array.isArray(a)) {
      if (a.length !== b.length) return false;
      looked.count += a.length;
      for (let index = 0; index < a.length; index += 1) waiting.push([a[index], b[index]]);
    } else {
      if (a.size !== b.size) return false;
      looked.count += a.size;
      for (const [key, value] of a) {
        if (!b.has(key)) return false;
        waiting.push([value, b.get(key)]);
      }
    }
  }
  return true;
}

function classOf(classes, one) {
  while (classes.has(one)) {
    const above = classes.get(one);
    if (classes.has(above)) classes.set(one, classes.get(above));
    one = above;
  }
  return one;
}
