/**
 * Procedures that apply procedures. How far one has come is a frame, so the machine can stop inside.
 * `RESUMES.get(kind)(state, frame, value)` takes what the procedure gave for the latest item.
 */

import { wrong } from "../errors.js";
import {
  COMPLEMENT,
  COMPOSE,
  DICT_FILTER,
  DICT_MAP,
  FILTER,
  FOR_EACH,
  MAP,
  REDUCE,
  SORT,
} from "../frames.js";
import { itemsOf, sortedItems } from "./lists.js";
import { mapOf } from "./maps.js";
import { shortly } from "../printer.js";
import { ANY, Combined, isProcedure, isTrue } from "../values.js";

/** `(apply f a b '(c d))` is `(f a b c d)`. */
function apply(state, args) {
  const procedure = procedureOf("apply", args[0]);
  const last = itemsOf(state, "apply", args.at(-1));
  state.work(last.length);
  return state.apply(procedure, [...args.slice(1, -1), ...last]);
}

function map(state, args) {
  const procedure = procedureOf("map", args[0]);
  const lists = args.slice(1).map((argument) => itemsOf(state, "map", argument));
  const frame = [MAP, procedure, lists, 0, []];
  state.stack.push(frame);
  return nextOfLists(state, frame);
}

function resumeMap(state, frame, value) {
  frame[4].push(value);
  return nextOfLists(state, frame);
}

function forEach(state, args) {
  const procedure = procedureOf("for-each", args[0]);
  const lists = args.slice(1).map((argument) => itemsOf(state, "for-each", argument));
  const frame = [FOR_EACH, procedure, lists, 0];
  state.stack.push(frame);
  return nextOfLists(state, frame);
}

/** Of several lists the shortest says how often. */
function nextOfLists(state, frame) {
  const [kind, procedure, lists, index] = frame;
  if (lists.some((items) => index >= items.length)) {
    state.stack.pop();
    return kind === MAP ? state.made(frame[4]) : null;
  }
  frame[3] = index + 1;
  return state.apply(
    procedure,
    lists.map((items) => items[index]),
  );
}

function filter(state, args) {
  const procedure = procedureOf("filter", args[0]);
  const frame = [FILTER, procedure, itemsOf(state, "filter", args[1]), 0, []];
  state.stack.push(frame);
  return nextToFilter(state, frame);
}

function resumeFilter(state, frame, value) {
  if (isTrue(value)) frame[4].push(frame[2][frame[3] - 1]);
  return nextToFilter(state, frame);
}

function nextToFilter(state, frame) {
  const [, procedure, items, index] = frame;
  if (index >= items.length) {
    state.stack.pop();
    return state.made(frame[4]);
  }
  frame[3] = index + 1;
  return state.apply(procedure, [items[index]]);
}

/** `(reduce f list first)`; without `first` it starts with the list's own. */
function reduce(state, args) {
  const procedure = procedureOf("reduce", args[0]);
  const items = itemsOf(state, "reduce", args[1]);
  if (args.length < 3 && !items.length)
    throw wrong("reduce: the list is empty, and there is nothing to start with");
  const [value, start] = args.length === 3 ? [args[2], 0] : [items[0], 1];
  const frame = [REDUCE, procedure, items, start];
  state.stack.push(frame);
  return resumeReduce(state, frame, value);
}

function resumeReduce(state, frame, value) {
  const [, procedure, items, index] = frame;
  if (index >= items.length) {
    state.stack.pop();
    return value;
  }
  frame[3] = index + 1;
  return state.apply(procedure, [value, items[index]]);
}

/** `(sort list)` or `(sort list comes-before?)`, the two in either order; stable. */
function sort(state, args) {
  if (args.length === 1) return sortedItems(state, itemsOf(state, "sort", args[0]));
  const [given, compares] = isProcedure(args[1]) ? args : [args[1], args[0]];
  const procedure = procedureOf("sort", compares);
  const items = itemsOf(state, "sort", given);
  state.charge(items.length);
  const frame = [SORT, procedure, items, [], 1, 0, 1];
  state.stack.push(frame);
  return nextToSort(state, frame);
}

function resumeSort(state, frame, value) {
  const [, , items, done, , left, right] = frame;
  if (isTrue(value)) {
    done.push(items[right]);
    frame[6] = right + 1;
  } else {
    done.push(items[left]);
    frame[5] = left + 1;
  }
  return nextToSort(state, frame);
}

/** Merges runs of `width` from `items` into `done`; asks whether the right one comes before. */
function nextToSort(state, frame) {
  for (;;) {
    const [, procedure, items, done, width, left, right] = frame;
    const count = items.length;
    if (width >= count) {
      state.stack.pop();
      return state.made([...items]);
    }
    const [, middle, end] = merging(count, done.length, width);
    if (left < middle && right < end) return state.apply(procedure, [items[right], items[left]]);
    for (let index = left; index < middle; index += 1) done.push(items[index]);
    for (let index = right; index < end; index += 1) done.push(items[index]);
    if (end < count) {
      frame[5] = end;
      frame[6] = Math.min(end + width, count);
    } else {
      frame.splice(2, 5, done, [], 2 * width, 0, Math.min(2 * width, count));
    }
  }
}

/** Start, middle and end of the two runs of `width` that are being merged. */
export function merging(count, done, width) {
  const start = Math.floor(done / (2 * width)) * (2 * width);
  return [start, Math.min(start + width, count), Math.min(start + 2 * width, count)];
}

/** `(dict-map f map)`: a map with `(f key value)` for each value. */
const dictMap = (state, args) => overMap(state, DICT_MAP, "dict-map", args);

/** `(dict-filter keep? map)`: the entries for which `(keep? key value)`. */
const dictFilter = (state, args) => overMap(state, DICT_FILTER, "dict-filter", args);

function overMap(state, kind, name, args) {
  const procedure = procedureOf(name, args[0]);
  const entries = mapOf(name, args[1]);
  const frame = [kind, procedure, entries, [...entries.keys()], []];
  state.stack.push(frame);
  return nextOfMap(state, frame);
}

function resumeOverMap(state, frame, value) {
  frame[4].push(value);
  return nextOfMap(state, frame);
}

function nextOfMap(state, frame) {
  const [kind, procedure, entries, keys, done] = frame;
  if (done.length < keys.length) {
    const key = keys[done.length];
    return state.apply(procedure, [key, entries.get(key)]);
  }
  state.stack.pop();
  if (kind === DICT_MAP) return state.madeMap(new Map(keys.map((key, index) => [key, done[index]])));
  const kept = keys.filter((_, index) => isTrue(done[index]));
  return state.madeMap(new Map(kept.map((key) => [key, entries.get(key)])));
}

const partial = (state, args) => combined(state, "partial", args, args.slice(0, 1));

/** `((compose f g) x)` is `(f (g x))`. */
const compose = (state, args) => combined(state, "compose", args, args);

const complement = (state, args) => combined(state, "complement", args, args);

const constantly = (state, args) => combined(state, "constantly", args, []);

function combined(state, kind, parts, procedures) {
  for (const procedure of procedures) procedureOf(kind, procedure);
  state.cells += 2;
  return new Combined(kind, state.made(parts));
}

function resumeCompose(state, frame, value) {
  const [, procedures, index] = frame;
  if (index === 0) state.stack.pop();
  else frame[2] = index - 1;
  return state.apply(procedures[index], [value]);
}

function resumeComplement(state, frame, value) {
  state.stack.pop();
  return !isTrue(value);
}

function procedureOf(name, value) {
  if (!isProcedure(value)) throw wrong(`${name}: not a procedure: ${shortly(value)}`);
  return value;
}

export const BUILTINS = {
  apply: [apply, 2, ANY],
  map: [map, 2, ANY],
  "for-each": [forEach, 2, ANY],
  filter: [filter, 2, 2],
  reduce: [reduce, 2, 3],
  sort: [sort, 1, 2],
  "dict-map": [dictMap, 2, 2],
  "dict-filter": [dictFilter, 2, 2],
  partial: [partial, 1, ANY],
  compose: [compose, 0, ANY],
  complement: [complement, 1, 1],
  constantly: [constantly, 1, 1],
};

export const RESUMES = new Map([
  [MAP, resumeMap],
  [FOR_EACH, nextOfLists],
  [FILTER, resumeFilter],
  [REDUCE, resumeReduce],
  [SORT, resumeSort],
  [DICT_MAP, resumeOverMap],
  [DICT_FILTER, resumeOverMap],
  [COMPOSE, resumeCompose],
  [COMPLEMENT, resumeComplement],
]);
