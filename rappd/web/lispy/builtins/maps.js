/** Maps from strings to values, in the order their keys came. Nothing changes one: it is copied. */

import { wrong } from "../errors.js";
import { itemAt, itemsOf } from "./lists.js";
import { shortly } from "../printer.js";
import { ANY, Pair } from "../values.js";

/** `value`, if it is a map. */
export function mapOf(name, value) {
  if (!(value instanceof Map)) throw wrong(`${name}: not a map: ${shortly(value)}`);
  return value;
}

function keyOf(name, value) {
  if (typeof value !== "string") throw wrong(`${name}: a key must be a string: ${shortly(value)}`);
  return value;
}

/** `(make-dict "a" 1 "b" 2)`; a step for each entry. */
function makeDict(state, args) {
  if (args.length % 2) throw wrong("make-dict: a key has no value");
  state.charge(args.length / 2);
  const made = new Map();
  for (let index = 0; index < args.length; index += 2)
    made.set(keyOf("make-dict", args[index]), args[index + 1]);
  return state.madeMap(made);
}

/** `(get map key default)` or `(get list index default)`; nil where no default is given. */
function get(state, [held, key, otherwise = null]) {
  if (held instanceof Map) {
    const found = held.get(keyOf("get", key));
    return found === undefined ? otherwise : found;
  }
  if (held === null) return otherwise;
  if (!Array.isArray(held) && !(held instanceof Pair))
    throw wrong(`get: not a map or a list: ${shortly(held)}`);
  const items = itemsOf(state, "get", held);
  if (typeof key !== "bigint") throw wrong(`get: not an index: ${shortly(key)}`);
  return itemAt(items, key, otherwise);
}

/** A copy of the map with one more, or one other, entry. */
function dictSet(state, [held, key, value]) {
  mapOf("dict-set", held);
  state.work(held.size);
  return state.madeMap(new Map(held).set(keyOf("dict-set", key), value));
}

/** The entries of all maps; of the same key the last one's. */
function dictMerge(state, args) {
  const merged = new Map();
  for (const argument of args) {
    const held = mapOf("dict-merge", argument);
    state.work(held.size);
    for (const [key, value] of held) merged.set(key, value);
    state.fits(merged.size);
  }
  return state.madeMap(merged);
}

const hasKey = (state, [held, key]) => {
  const wanted = keyOf("has-key?", key);
  return mapOf("has-key?", held).has(wanted);
};

function keys(state, [value]) {
  const held = mapOf("keys", value);
  state.charge(held.size);
  return state.made([...held.keys()]);
}

function values(state, [value]) {
  const held = mapOf("values", value);
  state.charge(held.size);
  return state.made([...held.values()]);
}

export const BUILTINS = {
  "make-dict": [makeDict, 0, ANY],
  get: [get, 2, 3],
  "dict-set": [dictSet, 3, 3],
  "dict-merge": [dictMerge, 0, ANY],
  "has-key?": [hasKey, 2, 2],
  keys: [keys, 1, 1],
  values: [values, 1, 1],
};
