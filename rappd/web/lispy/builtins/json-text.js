/** JSON text as values and back. A null is nil, an array a list, an object a map. */

import { isWhole, length } from "../characters.js";
import { Fault, passed } from "../errors.js";
import { numberIn, TooManyBits, written } from "../number-format.js";
import { Words } from "../printer.js";
import { textOf } from "./strings.js";
import { kindOf, Name } from "../values.js";

const PIECES =
  /[ \t\n\r]+|[[\]{},:]|"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;
const CONSTANTS = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
]);
const ESCAPED = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** The value that a JSON text stands for. */
function parse(state, args) {
  const text = textOf(state, "json-parse", args[0]);
  const parsing = new Parsing(state, text);
  const value = parsing.value();
  state.work(parsing.count);
  return value;
}

/** One pass over a JSON text, with a stack of its own for what is open. */
class Parsing {
  constructor(state, text) {
    this.state = state;
    this.text = text;
    this.open = [];
    this.keys = [];
    this.count = 0;
  }

  value() {
    let want = "value";
    let value = null;
    let place = 0;
    while (place < this.text.length) {
      PIECES.lastIndex = place;
      const piece = PIECES.exec(this.text)?.[0];
      if (piece === undefined) throw this.bad(place);
      if (" \t\n\r".includes(piece[0])) {
        place += piece.length;
        continue;
      }
      this.count += 1;
      if (want === ":") {
        if (piece !== ":") throw this.bad(place);
        want = "value";
      } else if (piece[0] === '"' && (want === "key" || want === "key or }")) {
        this.keys.push(this.string(piece, place));
        want = ":";
      } else if (piece === "," && want === "," && this.open.length) {
        want = Array.isArray(this.open.at(-1)) ? "value" : "key";
      } else if ((piece === "[" || piece === "{") && (want === "value" || want === "value or ]")) {
        this.open.push(piece === "[" ? [] : new Map());
        want = piece === "[" ? "value or ]" : "key or }";
        const limit = this.state.limits.max_reader_depth;
        if (this.open.length > limit) throw passed("reader_depth", limit, this.open.length);
      } else {
        if (piece === "]" || piece === "}") value = this.closed(piece, want, place);
        else if (want === "value" || want === "value or ]") value = this.atom(piece, place);
        else throw this.bad(place);
        want = ",";
        if (this.open.length) this.put(value);
      }
      place += piece.length;
    }
    if (this.open.length || want !== ",") throw this.bad(place);
    return value;
  }

  closed(piece, want, place) {
    const isArray = piece === "]";
    const fits = this.open.length && Array.isArray(this.open.at(-1)) === isArray;
    if (!fits || !(want === "," || want.endsWith(piece))) throw this.bad(place);
    const held = this.open.pop();
    return isArray ? this.state.made(held) : this.state.madeMap(held);
  }

  put(value) {
    const into = this.open.at(-1);
    if (Array.isArray(into)) into.push(value);
    else into.set(this.keys.pop(), value);
  }

  atom(piece, place) {
    if (CONSTANTS.has(piece)) return CONSTANTS.get(piece);
    if (piece[0] === '"') return this.string(piece, place);
    const limit = this.state.limits.max_integer_bits;
    let number = null;
    try {
      if (/^[-0-9]/.test(piece)) number = numberIn(piece, limit);
    } catch (error) {
      if (!(error instanceof TooManyBits)) throw error;
      throw passed("integer_bits", limit, limit + 1);
    }
    if (number === null) throw this.bad(place);
    return number;
  }

  string(piece, place) {
    const text = piece
      .slice(1, -1)
      .replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_, code, letter) =>
        code === undefined ? (ESCAPED[letter] ?? letter) : String.fromCharCode(parseInt(code, 16)),
      );
    if (!isWhole(text)) throw this.bad(place);
    return this.state.madeText(text);
  }

  bad(place) {
    const character = length(this.text.slice(0, place)) + 1;
    return new Fault("invalid-data", `json-parse: not JSON at character ${character}`);
  }
}

/** Compact JSON text of nil, booleans, numbers, strings, symbols (as strings), lists and maps. */
function dump(state, args) {
  const limit = state.limits.max_collection_items;
  let left = limit;
  const pieces = [];
  const waiting = [args[0]];
  while (waiting.length) {
    const value = waiting.pop();
    let piece;
    if (Array.isArray(value) && value.length < left) {
      piece = "[";
      waiting.push(new Words("]"));
      for (let index = value.length - 1; index >= 0; index -= 1) {
        waiting.push(value[index]);
        if (index) waiting.push(new Words(","));
      }
    } else if (value instanceof Map && value.size < left) {
      piece = "{";
      waiting.push(new Words("}"));
      let number = value.size;
      for (const [key, held] of [...value].reverse()) {
        waiting.push(held, new Words(":"), key);
        number -= 1;
        if (number) waiting.push(new Words(","));
      }
    } else if (Array.isArray(value) || value instanceof Map) {
      throw passed("collection_items", limit, limit + 1);
    } else {
      piece = atomText(value);
    }
    left -= length(piece);
    if (left < 0) throw passed("collection_items", limit, limit + 1);
    pieces.push(piece);
  }
  return state.madeText(state.reading(pieces.join("")));
}

function atomText(value) {
  if (value instanceof Words) return value.text;
  if (typeof value === "string") return JSON.stringify(value);
  if (value instanceof Name) return JSON.stringify(value.text);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return written(value);
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "true" : "false";
  throw new Fault("serialization", `json-dump: ${kindOf(value)} has no form in JSON`);
}

export const BUILTINS = {
  "json-parse": [parse, 1, 1],
  "json->sexp": [parse, 1, 1],
  "json-dump": [dump, 1, 1],
  "sexp->json": [dump, 1, 1],
};
