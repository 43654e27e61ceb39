/** Strings and symbols. Places and lengths count characters. */

import { length, slice } from "../characters.js";
import { passed, wrong } from "../errors.js";
import { append, itemsOf } from "./lists.js";
import { numberIn, TooManyBits } from "../number-format.js";
import { displayed, shortly, TooLong } from "../printer.js";
import { ANY, isNumber, Name, Pair } from "../values.js";

// Blank characters: those of Python's str.isspace.
const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const BLANKS = new RegExp(`[${SPACES}]+`, "u");
const OUTER_BLANKS = new RegExp(`^[${SPACES}]+|[${SPACES}]+$`, "gu");

/** `value`, if it is a string. */
export function textOf(state, name, value) {
  if (typeof value !== "string") throw wrong(`${name}: not a string: ${shortly(value)}`);
  return state.reading(value);
}

/** Any value as a person reads it; the characters of what is no string are charged for. */
export function asText(state, value) {
  const limit = state.limits.max_collection_items;
  try {
    return state.reading(displayed(value, limit));
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    throw passed("collection_items", limit, limit + 1);
  }
}

function joined(state, pieces, between = "") {
  const size = pieces.reduce((total, piece) => total + length(piece), 0);
  state.fits(size + length(between) * Math.max(0, pieces.length - 1));
  return state.madeText(pieces.join(between));
}

const stringAppend = (state, args) =>
  joined(
    state,
    args.map((argument) => textOf(state, "string-append", argument)),
  );

/** Lists as one list; with anything else among them, all of them as one text. */
function concat(state, args) {
  const isList = (value) => value === null || Array.isArray(value) || value instanceof Pair;
  if (args.length && args.every(isList)) return append(state, args);
  return joined(
    state,
    args.map((argument) => asText(state, argument)),
  );
}

const toString = (state, [value]) => state.madeText(asText(state, value));

function numberToString(state, [value]) {
  if (!isNumber(value)) throw wrong(`number->string: not a number: ${shortly(value)}`);
  return state.madeText(asText(state, value));
}

/** The number that `text` is, blanks around it aside, or nil. */
function numberFrom(state, text) {
  const limit = state.limits.max_integer_bits;
  try {
    return numberIn(trimmed(text), limit);
  } catch (error) {
    if (!(error instanceof TooManyBits)) throw error;
    throw passed("integer_bits", limit, limit + 1);
  }
}

const trimmed = (text) => text.replace(OUTER_BLANKS, "");

const stringToNumber = (state, [value]) => numberFrom(state, textOf(state, "string->number", value));

const toNumber = (state, [value]) =>
  isNumber(value) ? value : numberFrom(state, textOf(state, "->number", value));

const lengthOf = (state, [value]) => BigInt(length(textOf(state, "string-length", value)));

function placeOf(name, value) {
  if (typeof value !== "bigint") throw wrong(`${name}: not a place: ${shortly(value)}`);
  return value;
}

function ref(state, args) {
  const text = textOf(state, "string-ref", args[0]);
  const place = placeOf("string-ref", args[1]);
  if (place < 0n || place >= length(text)) throw wrong(`string-ref: there is no character ${shortly(place)}`);
  return slice(text, Number(place), Number(place) + 1);
}

/** `(substring text start end)`; to the end of the text without `end`. */
function substring(state, args) {
  const text = textOf(state, "substring", args[0]);
  const size = length(text);
  const start = placeOf("substring", args[1]);
  const end = args.length === 3 ? placeOf("substring", args[2]) : BigInt(size);
  if (start < 0n || end < start || end > size)
    throw wrong(`substring: ${shortly(start)} to ${shortly(end)} is not within ${size} characters`);
  return state.madeText(slice(text, Number(start), Number(end)));
}

const upcase = (state, [value]) => state.madeText(textOf(state, "string-upcase", value).toUpperCase());

const downcase = (state, [value]) => state.madeText(textOf(state, "string-downcase", value).toLowerCase());

const trim = (state, [value]) => state.madeText(trimmed(textOf(state, "string-trim", value)));

function contains(state, args) {
  const [text, part] = args.map((argument) => textOf(state, "string-contains?", argument));
  return text.includes(part);
}

/** `(string-replace text old new)`: every `old` replaced. */
function replace(state, args) {
  const [text, old, put] = args.map((argument) => textOf(state, "string-replace", argument));
  if (!old) throw wrong("string-replace: there is nothing to look for");
  const pieces = text.split(old);
  state.fits(length(text) + (pieces.length - 1) * (length(put) - length(old)));
  return state.madeText(pieces.join(put));
}

/** `(string-split text separator)`; at blanks, none of them kept, without one; a step for each piece. */
function split(state, args) {
  const text = textOf(state, "string-split", args[0]);
  let pieces;
  if (args.length === 1) {
    pieces = text.split(BLANKS).filter(Boolean);
  } else {
    const separator = textOf(state, "string-split", args[1]);
    if (!separator) throw wrong("string-split: the separator is empty");
    pieces = text.split(separator);
  }
  state.charge(pieces.length);
  state.cells += length(text) >> 5;
  return state.made(pieces);
}

/** `(string-join list separator)`, the two in either order; nothing between without one. */
function join(state, args) {
  let [items, between = ""] = args;
  if (typeof items === "string") [items, between] = [between, items];
  const pieces = itemsOf(state, "string-join", items);
  state.work(pieces.length);
  const separator = textOf(state, "string-join", between);
  return joined(
    state,
    pieces.map((piece) => textOf(state, "string-join", piece)),
    separator,
  );
}

function symbolToString(state, [value]) {
  if (!(value instanceof Name)) throw wrong(`symbol->string: not a symbol: ${shortly(value)}`);
  return state.madeText(value.text);
}

const stringToSymbol = (state, [value]) => new Name(state.madeText(textOf(state, "string->symbol", value)));

export const BUILTINS = {
  "string-append": [stringAppend, 0, ANY],
  concat: [concat, 0, ANY],
  "->string": [toString, 1, 1],
  string: [toString, 1, 1],
  "number->string": [numberToString, 1, 1],
  "->number": [toNumber, 1, 1],
  number: [toNumber, 1, 1],
  "string->number": [stringToNumber, 1, 1],
  "string-length": [lengthOf, 1, 1],
  "string-ref": [ref, 2, 2],
  substring: [substring, 2, 3],
  "string-upcase": [upcase, 1, 1],
  "string-downcase": [downcase, 1, 1],
  "string-trim": [trim, 1, 1],
  "string-contains?": [contains, 2, 2],
  "string-replace": [replace, 3, 3],
  "string-split": [split, 1, 2],
  "string-join": [join, 1, 2],
  "symbol->string": [symbolToString, 1, 1],
  "string->symbol": [stringToSymbol, 1, 1],
};
