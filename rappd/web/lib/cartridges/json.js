/**
 * A cartridge as text, read as strictly and written as exactly as `twins/cartridges/json_documents.py` does: whole
 * numbers are BigInt and others numbers (1 and 1.0 are two things), objects are Maps in the order of their keys.
 */

import { isWhole } from "../../lispy/characters.js";
import { BadCartridge } from "./problem.js";

export const MAX_BYTES = 32 << 20;
export const MAX_DEPTH = 100;

const BLANK = /[ \t\n\r]*/y;
const STRING = /"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const CONSTANTS = new Map([
  ["t", ["true", true]],
  ["f", ["false", false]],
  ["n", ["null", null]],
]);
const LEAST = -(1n << 63n);
const MOST = 1n << 64n;
const MOST_DIGITS = 24;

/** True for an integer that a file may hold. */
export const isInteger = (value) => typeof value === "bigint" && value >= LEAST && value < MOST;

/** The object in `octets` (UTF-8). Throws BadCartridge for anything that two readers could understand differently. */
export function parse(octets, name) {
  try {
    if (octets.length > MAX_BYTES) throw new Wrong(`it has more than ${MAX_BYTES >> 20} MB`);
    return new Reading(textOf(octets)).document();
  } catch (found) {
    if (!(found instanceof Wrong)) throw found;
    throw new BadCartridge(`${name} is damaged (${found.message}); nothing was opened.`);
  }
}

class Wrong extends Error {}

function textOf(octets) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(octets);
  } catch {
    throw new Wrong("it is not text");
  }
}

class Reading {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  document() {
    const found = this.value(1);
    this.blank();
    if (this.at < this.text.length) throw this.unexpected();
    if (!(found instanceof Map)) throw new Wrong("it holds no object");
    return found;
  }

  value(depth) {
    this.blank();
    const first = this.text[this.at];
    if (first === "{" || first === "[") {
      if (depth > MAX_DEPTH) throw new Wrong("it is nested too deep");
      this.at += 1;
      return first === "{" ? this.object(depth) : this.list(depth);
    }
    if (first === '"') return this.string();
    const [word, value] = CONSTANTS.get(first) ?? [];
    if (word === undefined) return this.number();
    if (!this.text.startsWith(word, this.at)) throw this.unexpected();
    this.at += word.length;
    return value;
  }

  object(depth) {
    const found = new Map();
    if (this.takes("}")) return found;
    do {
      this.blank();
      const key = this.string();
      if (found.has(key)) throw new Wrong(`it has the key "${key.slice(0, 60)}" twice in one object`);
      if (!this.takes(":")) throw this.unexpected();
      found.set(key, this.value(depth + 1));
    } while (this.takes(","));
    if (!this.takes("}")) throw this.unexpected();
    return found;
  }

  list(depth) {
    const found = [];
    if (this.takes("]")) return found;
    do found.push(this.value(depth + 1));
    while (this.takes(","));
    if (!this.takes("]")) throw this.unexpected();
    return found;
  }

  string() {
    const found = JSON.parse(this.match(STRING)[0]);
    if (!isWhole(found)) throw new Wrong("it holds half a character");
    return found;
  }

  number() {
    const [written, fraction, exponent] = this.match(NUMBER);
    if (fraction !== undefined || exponent !== undefined) {
      const found = Number(written);
      if (!Number.isFinite(found) || written.length > 400)
        throw new Wrong("it holds a number that is too large");
      return found;
    }
    if (written.length <= MOST_DIGITS && isInteger(BigInt(written))) return BigInt(written);
    throw new Wrong("it holds a number of more than 64 bits");
  }

  takes(letter) {
    this.blank();
    if (this.text[this.at] !== letter) return false;
    this.at += 1;
    return true;
  }

  blank() {
    this.match(BLANK);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) throw this.unexpected();
    this.at = pattern.lastIndex;
    return found;
  }

  unexpected() {
    const line = this.text.slice(0, this.at).split("\n").length;
    return new Wrong(
      this.at < this.text.length ? `line ${line} is not JSON` : `it breaks off in line ${line}`,
    );
  }
}

/** `document` as a file: indented by two, keys in their order, one newline at the end. Throws BadCartridge. */
export function written(document) {
  const text = levels(document) <= MAX_DEPTH ? `${textFrom(document, "\n")}\n` : "";
  if (!text || new TextEncoder().encode(text).length > MAX_BYTES)
    throw new BadCartridge("The cartridge has become too large to be kept.", "Let it remember less.");
  return text;
}

function textFrom(value, line) {
  if (value instanceof Map || Array.isArray(value)) {
    const isMap = value instanceof Map;
    const inside = `${line}  `;
    const items = isMap
      ? [...value].map(([key, held]) => `${JSON.stringify(key)}: ${textFrom(held, inside)}`)
      : value.map((held) => textFrom(held, inside));
    const [open, close] = isMap ? "{}" : "[]";
    return items.length ? `${open}${inside}${items.join(`,${inside}`)}${line}${close}` : open + close;
  }
  if (typeof value === "bigint") return value.toString();
  return typeof value === "number" ? float(value) : JSON.stringify(value);
}

/** As the daemon writes them: `1.0`, `1e+16`, `1e-6`. */
function float(value) {
  if (Object.is(value, -0)) return "-0.0";
  const short = value.toExponential();
  const exponent = Number(short.slice(short.indexOf("e") + 1));
  if (value !== 0 && (exponent >= 16 || exponent < -5)) return short;
  const text = String(value);
  return text.includes(".") ? text : `${text}.0`;
}

/** Nesting depth of objects and lists, the outermost counted. */
export function levels(value) {
  let count = 0;
  for (let level = [value].filter(hasParts); level.length; count += 1)
    level = level.flatMap((one) => [...one.values()].filter(hasParts));
  return count;
}

const hasParts = (value) => value instanceof Map || Array.isArray(value);

/** True if two values are equal as JSON. */
export function same(a, b) {
  if (a instanceof Map) {
    const held = (key, value) => b.has(key) && same(value, b.get(key));
    return b instanceof Map && a.size === b.size && [...a].every(([key, value]) => held(key, value));
  }
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((one, place) => same(one, b[place]));
  return typeof a === typeof b && a === b;
}

/** True if JSON represents the value exactly. */
export function isJson(value) {
  if (Array.isArray(value)) return value.every(isJson);
  if (value instanceof Map) return [...value.values()].every(isJson);
  if (typeof value === "bigint") return isInteger(value);
  return value === null || ["boolean", "number", "string"].includes(typeof value);
}

/** The same as objects and numbers, as the machine's images and wired values are; these hold whole numbers alone. */
export function toObjects(value) {
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([key, held]) => [key, toObjects(held)]));
  if (Array.isArray(value)) return value.map(toObjects);
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" ? NaN : value;
}

/** The opposite of `toObjects`. */
export function fromObjects(value) {
  if (Array.isArray(value)) return value.map(fromObjects);
  if (typeof value === "number") return BigInt(value);
  if (value === null || typeof value !== "object") return value;
  return new Map(Object.entries(value).map(([key, held]) => [key, fromObjects(held)]));
}
