/** Checks that a machine can have made a frame of an image. */

import {
  AND,
  BODY,
  CALL,
  COMPOSE,
  COND,
  DEFINE,
  DICT_FILTER,
  DICT_MAP,
  DOTIMES,
  FIELDS,
  FILTER,
  FOR_EACH,
  IF,
  LET,
  LET_STAR,
  MAP,
  OR,
  PIPE,
  REDUCE,
  SEQUENCE,
  SET,
  SORT,
  UNLESS,
  WHEN,
} from "../frames.js";
import { merging } from "../builtins/higher-order.js";
import { isNamed, Name } from "../values.js";

const SPECIAL = new Set([IF, COND, DEFINE, SET, LET, LET_STAR, AND, OR, WHEN, UNLESS, PIPE, DOTIMES]);

/** Checks that lengths and positions in the frame agree. The types of its fields were checked before. */
export function isSound([kind, ...held]) {
  if (SPECIAL.has(kind) && !isNamed(held[0][0], FIELDS[kind].name)) return false;
  const test = TESTS.get(kind);
  return test === undefined || test(...held);
}

const isWithin = (from) => (form, place) => from <= place && place < form.length;

const isDefinition = (form) => form.length === 3 && form[1] instanceof Name;

const hasBindings = (form) => form.length >= 2 && Array.isArray(form[1]);

const isTested = (form) => form.length >= 2;

const isForEach = (procedure, lists, place) =>
  lists.length > 0 && lists.every((items) => Array.isArray(items) && place <= items.length) && place >= 1;

function isSort(procedure, items, done, width, left, right) {
  const count = items.length;
  if (width < 1 || width >= count || (width & (width - 1)) !== 0) return false;
  const [start, middle, end] = merging(count, done.length, width);
  const isBetween = start <= left && left < middle && middle <= right && right < end;
  return isBetween && left + right - middle === done.length;
}

function isOverMap(procedure, entries, keys, done) {
  const own = [...entries.keys()];
  return (
    own.length === keys.length && own.every((key, index) => key === keys[index]) && done.length < keys.length
  );
}

const TESTS = new Map([
  [CALL, (form, scope, done) => done.length < form.length],
  [BODY, (form, place) => place >= 3 && place <= form.length],
  [SEQUENCE, isWithin(1)],
  [IF, (form) => form.length === 3 || form.length === 4],
  [COND, isWithin(1)],
  [DEFINE, isDefinition],
  [SET, isDefinition],
  [LET, (form, scope, done) => hasBindings(form) && done.length < form[1].length],
  [LET_STAR, (form, place) => hasBindings(form) && place < form[1].length],
  [AND, isWithin(2)],
  [OR, isWithin(2)],
  [WHEN, isTested],
  [UNLESS, isTested],
  [PIPE, isWithin(2)],
  [
    DOTIMES,
    (form, scope, place, count) => form.length >= 3 && (place <= count || (place === 0 && count === -1)),
  ],
  [COMPOSE, (procedures, place) => place < procedures.length],
  [MAP, (procedure, lists, place, done) => isForEach(procedure, lists, place) && done.length === place - 1],
  [FOR_EACH, isForEach],
  [FILTER, (procedure, items, place, done) => place >= 1 && place <= items.length && done.length < place],
  [REDUCE, (procedure, items, place) => place >= 1 && place <= items.length],
  [SORT, isSort],
  [DICT_MAP, isOverMap],
  [DICT_FILTER, isOverMap],
]);
