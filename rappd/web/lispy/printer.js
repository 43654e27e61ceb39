/** Values as text: as a program would write them, or as a person reads them. */

import { length, slice } from "./characters.js";
import { written } from "./number-format.js";
import { Builtin, Closure, Combined, Macro, Name, Pair } from "./values.js";

/** The text would have more characters than it may. */
export class TooLong extends Error {}

/** Text on a writer's stack that stands for itself, between values that are still to be written. */
export class Words {
  constructor(text) {
    this.text = text;
  }
}

const SPACE = new Words(" ");
const CLOSE = new Words(")");
const DOT = new Words(" . ");
const OPEN_ENTRY = new Words(" (");
const ESCAPES = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t" };

/**
 * As a program writes it, strings in quotes. Throws TooLong beyond `most` characters. The work is bounded by
 * `most` too, however often a value shares its parts.
 */
export function printed(value, most) {
  const pieces = [];
  let left = most;
  const waiting = [value];
  while (waiting.length) {
    const next = waiting.pop();
    let piece;
    if (Array.isArray(next)) {
      piece = "(";
      if (next.length > left) throw new TooLong(); // each item takes a character at least
      waiting.push(CLOSE);
      for (let index = next.length - 1; index >= 0; index -= 1) {
        waiting.push(next[index]);
        if (index) waiting.push(SPACE);
      }
    } else if (next instanceof Pair) {
      piece = "(";
      waiting.push(CLOSE, next.cdr, DOT, next.car);
    } else if (next instanceof Map) {
      piece = "(dict";
      if (next.size > left) throw new TooLong();
      waiting.push(CLOSE);
      for (const [key, held] of [...next].reverse()) waiting.push(CLOSE, held, DOT, key, OPEN_ENTRY);
    } else {
      piece = next instanceof Words ? next.text : atom(next);
    }
    left -= length(piece);
    if (left < 0) throw new TooLong();
    pieces.push(piece);
  }
  return pieces.join("");
}

/** As a person reads it: a string as it is, everything else as `printed`. */
export function displayed(value, most) {
  if (typeof value !== "string") return printed(value, most);
  if (length(value) > most) throw new TooLong();
  return value;
}

/** `printed` for a message: what does not fit is cut, and ends in "…". */
export function shortly(value, most = 80) {
  if (typeof value === "string" && length(value) > most)
    return `${printed(slice(value, 0, most), 2 * most + 2)}…`;
  try {
    return printed(value, most);
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    return `a ${wordFor(value)} too long to show`;
  }
}

/** Anything but a list, a pair or a map, as a program writes it. */
function atom(value) {
  if (value instanceof Name) return value.text;
  if (typeof value === "string") return `"${value.replace(/[\\"\n\t]/g, (letter) => ESCAPES[letter])}"`;
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return written(value);
  if (value === null) return "()";
  if (typeof value === "boolean") return value ? "#t" : "#f";
  if (value instanceof Builtin) return `#<builtin ${value.name}>`;
  if (value instanceof Macro) return value.name ? `#<macro ${value.name}>` : "#<macro>";
  if (value instanceof Closure) return value.name ? `#<procedure ${value.name}>` : "#<procedure>";
  if (value instanceof Combined) return `#<procedure ${value.kind}>`;
  throw new TypeError("not a value of the language");
}

function wordFor(value) {
  if (Array.isArray(value)) return "list";
  if (value instanceof Pair) return "pair";
  if (value instanceof Map) return "map";
  return typeof value === "bigint" ? "number" : "value";
}
