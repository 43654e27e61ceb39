/** Size of a machine's live values. */

import { length } from "./characters.js";
import { passed } from "./errors.js";
import { bitLength, SMALL } from "./number-format.js";
import { Closure, Combined, Name, Pair, Scope } from "./values.js";

export const FRAME_CELLS = 8;

/**
 * Counts what is alive, once as many cells were made as may be alive. Throws Fault when it is too much, and
 * charges for the counting.
 */
export function checkMemory(state) {
  const limit = state.limits.max_cells;
  const alive = countAlive(state, limit);
  if (alive > limit) throw passed("cells", limit, limit + 1);
  state.cells = 0;
  state.work(alive);
}

function countAlive(state, enough) {
  let total = FRAME_CELLS * state.stack.length;
  const seen = new Set();
  const waiting = [state.globals, state.procedure, state.arguments];
  for (const input of state.inputs ?? []) waiting.push(input);
  for (const frame of state.stack) for (const held of frame) waiting.push(held);
  while (waiting.length && total <= enough) {
    const value = waiting.pop();
    if (typeof value === "string" || value instanceof Name) {
      total += length(value.text ?? value) >> 5;
    } else if (typeof value === "bigint") {
      if (value <= -SMALL || value >= SMALL) total += bitLength(value) >> 8;
    } else if (value !== null && typeof value === "object" && !seen.has(value)) {
      total += cellsOf(value, waiting, seen);
    }
  }
  return total;
}

function cellsOf(value, waiting, seen) {
  seen.add(value);
  if (Array.isArray(value)) {
    for (const item of value) waiting.push(item);
    return 1 + value.length;
  }
  if (value instanceof Pair) {
    waiting.push(value.car, value.cdr);
    return 3;
  }
  if (value instanceof Map) {
    for (const [key, held] of value) waiting.push(key, held);
    return 1 + 2 * value.size;
  }
  if (value instanceof Combined) {
    waiting.push(value.parts);
    return 2;
  }
  if (value instanceof Scope) {
    for (const held of value.bindings.values()) waiting.push(held);
    if (value.parent !== null) waiting.push(value.parent);
    return 2 + value.bindings.size;
  }
  if (value instanceof Closure) {
    waiting.push(value.form, value.scope);
    return 4;
  }
  return 0; // a builtin
}
