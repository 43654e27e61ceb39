/** Equality of two values. */

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
  if (!areBothWithParts(a, b)) return areEqualAtoms(a, b);
  const looked = { count: 0 };
  const are = compare(a, b, looked);
  state.work(looked.count);
  return are;
}

const areBothWithParts = (a, b) =>
  (Array.isArray(a) && Array.isArray(b)) ||
  (a instanceof Pair && b instanceof Pair) ||
  (a instanceof Map && b instanceof Map);

// A BigInt and a number are compared by what they stand for.
const areEqualAtoms = (a, b) => isSame(a, b) || (isNumber(a) && isNumber(b) && a == b);

function compare(first, second, looked) {
  const classes = new Map(); // of objects found equal as far as one has looked; each points to another
  const waiting = [[first, second]];
  while (waiting.length) {
    const [a, b] = waiting.pop();
    if (!areBothWithParts(a, b)) {
      if (!areEqualAtoms(a, b)) return false;
      continue;
    }
    const [one, other] = [classOf(classes, a), classOf(classes, b)];
    if (one === other) continue;
    classes.set(one, other);
    looked.count += 1;
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
