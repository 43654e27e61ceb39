/** Lists and pairs. Where a list is wanted, nil and a chain of pairs that ends in one of them will do. */

import { compare, length } from "../characters.js";
import { wrong } from "../errors.js";
import { floorDivide } from "../number-format.js";
import { shortly } from "../printer.js";
import { ANY, isNumber, Pair } from "../values.js";

/** The items of a list, which must not be changed; a chain of pairs costs a step a pair. */
export function itemsOf(state, name, value) {
  if (Array.isArray(value)) return value;
  if (value === null) return [];
  if (!(value instanceof Pair)) throw wrong(`${name}: not a list: ${shortly(value)}`);
  const items = [];
  let link = value;
  for (; link instanceof Pair; link = link.cdr) {
    state.charge(1);
    items.push(link.car);
  }
  if (Array.isArray(link)) for (const item of link) items.push(item);
  else if (link !== null) throw wrong(`${name}: not a proper list: ${shortly(value)}`);
  state.fits(items.length);
  return items;
}

/** A new list of numbers, or of strings, in ascending order. */
export function sortedItems(state, items) {
  state.charge(items.length);
  if (items.every(isNumber)) return state.made([...items].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
  if (items.every((item) => typeof item === "string")) return state.made([...items].sort(compare));
  throw wrong("sort: without a procedure that compares, only numbers or only strings are sorted");
}

/** A whole number that is not negative, for a place among fewer items than Numbers can count. */
function countOf(name, value) {
  if (typeof value !== "bigint" || value < 0n) throw wrong(`${name}: not a count: ${shortly(value)}`);
  return Number(value);
}

/** The item at a place, negative ones from the end; `otherwise` where there is none. */
export function itemAt(items, place, otherwise) {
  const index = Number(place);
  if (index < -items.length || index >= items.length) return otherwise;
  return items.at(index);
}

const makeList = (state, args) => state.made(args);

const cons = (state, [car, cdr]) => state.madePair(car, cdr);

function car(state, [value]) {
  if (value instanceof Pair) return value.car;
  if (Array.isArray(value) && value.length) return value[0];
  throw wrong(`car: not a pair: ${shortly(value)}`);
}

function cdr(state, [value]) {
  if (value instanceof Pair) return value.cdr;
  if (Array.isArray(value) && value.length) {
    state.work(value.length);
    return state.made(value.slice(1));
  }
  throw wrong(`cdr: not a pair: ${shortly(value)}`);
}

const isEmptyList = (value) => value === null || (Array.isArray(value) && !value.length);

const first = (state, args) => (isEmptyList(args[0]) ? null : car(state, args));

const rest = (state, args) => (isEmptyList(args[0]) ? state.made([]) : cdr(state, args));

function last(state, [value]) {
  const items = itemsOf(state, "last", value);
  return items.length ? items.at(-1) : null;
}

function nth(state, [value, place]) {
  const items = itemsOf(state, "nth", value);
  if (typeof place !== "bigint") throw wrong(`nth: not an index: ${shortly(place)}`);
  return itemAt(items, place, null);
}

function lengthOf(state, [value]) {
  if (typeof value === "string") return BigInt(length(value));
  if (value instanceof Map) return BigInt(value.size);
  return BigInt(itemsOf(state, "length", value).length);
}

/** The items of all arguments; a step for each. */
export function append(state, args) {
  const joined = [];
  for (const argument of args) {
    const items = itemsOf(state, "append", argument);
    state.fits(joined.length + items.length);
    state.charge(items.length);
    for (const item of items) joined.push(item);
  }
  return state.made(joined);
}

function reverse(state, [value]) {
  const items = itemsOf(state, "reverse", value);
  state.charge(items.length);
  return state.made([...items].reverse());
}

/** `(range end)`, `(range start end)`, `(range start end step)`: whole numbers, the end left out. */
function range(state, args) {
  for (const argument of args)
    if (typeof argument !== "bigint") throw wrong(`range: not an integer: ${shortly(argument)}`);
  const [start, end] = args.length === 1 ? [0n, args[0]] : args;
  const step = args.length === 3 ? args[2] : 1n;
  if (step === 0n) throw wrong("range: the step is 0");
  const long = step > 0n ? -floorDivide(start - end, step) : -floorDivide(end - start, -step);
  const count = long > 0n ? Number(long) : 0;
  state.fits(count);
  state.charge(count);
  const numbers = [];
  for (let index = 0, number = start; index < count; index += 1, number += step) numbers.push(number);
  return state.made(numbers);
}

function take(state, [value, count]) {
  const taken = itemsOf(state, "take", value).slice(0, countOf("take", count));
  state.charge(taken.length);
  return state.made(taken);
}

function drop(state, [value, count]) {
  const left = itemsOf(state, "drop", value).slice(countOf("drop", count));
  state.charge(left.length);
  return state.made(left);
}

/** Lists of the first items, of the second ones, and so on, as long as the shortest. */
function zip(state, args) {
  const lists = args.map((argument) => itemsOf(state, "zip", argument));
  const count = lists.reduce((least, items) => Math.min(least, items.length), Infinity);
  state.charge(count);
  state.work(count * lists.length);
  const zipped = [];
  for (let index = 0; index < count; index += 1) zipped.push(state.made(lists.map((items) => items[index])));
  return state.made(zipped);
}

/** Flattens nested lists, in order; a step for each item that is no list. */
function flatten(state, [value]) {
  const flat = [];
  const waiting = [...itemsOf(state, "flatten", value)].reverse();
  for (let looked = 1; waiting.length; looked += 1) {
    const next = waiting.pop();
    if (looked % 64 === 0) state.charge(1);
    if (Array.isArray(next) || next instanceof Pair) {
      const inner = itemsOf(state, "flatten", next);
      state.fits(waiting.length + inner.length);
      for (let index = inner.length - 1; index >= 0; index -= 1) waiting.push(inner[index]);
    } else {
      state.charge(1);
      flat.push(next);
      state.fits(flat.length);
    }
  }
  return state.made(flat);
}

export const BUILTINS = {
  list: [makeList, 0, ANY],
  cons: [cons, 2, 2],
  car: [car, 1, 1],
  cdr: [cdr, 1, 1],
  first: [first, 1, 1],
  rest: [rest, 1, 1],
  last: [last, 1, 1],
  nth: [nth, 2, 2],
  length: [lengthOf, 1, 1],
  append: [append, 0, ANY],
  reverse: [reverse, 1, 1],
  range: [range, 1, 3],
  take: [take, 2, 2],
  drop: [drop, 2, 2],
  zip: [zip, 1, ANY],
  flatten: [flatten, 1, 1],
};
