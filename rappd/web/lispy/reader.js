/** Program text as forms. */

import { byteLength, isWhole, length } from "./characters.js";
import { Fault, malformed, passed } from "./errors.js";
import { numberIn, TooManyBits } from "./number-format.js";
import { Name } from "./values.js";

const PIECES =
  /[ \t\n\r\f\v]+|;[^\n]*|[()[\]]|"[^"\\]*(?:\\[^][^"\\]*)*"|"|'|`|,@|,|[^ \t\n\r\f\v()[\]"'`,;]+/g;
const BLANK = " \t\n\r\f\v;";
const CLOSING = { "(": ")", "[": "]" };
const PREFIXES = { "'": "quote", "`": "quasiquote", ",": "unquote", ",@": "unquote-splicing" };
const ESCAPED = { n: "\n", t: "\t", '"': '"', "\\": "\\" };
const ATOMS = new Map([
  ["#t", true],
  ["#f", false],
  ["nil", null],
]);

/** Every form in `source`; `named` stands before line and column in what it says. Throws Fault. */
export function read(source, limits, named = "<vm>") {
  if (!isWhole(source)) throw new Fault("invalid-data", "the source is not text: it holds half a character");
  const size = byteLength(source);
  if (size > limits.max_source_bytes) throw passed("source_bytes", limits.max_source_bytes, size);
  const forms = [];
  const outer = []; // what is open: [where it goes, its opening or prefix, place]
  let into = forms;
  for (const match of source.matchAll(PIECES)) {
    const piece = match[0];
    const place = match.index;
    if (BLANK.includes(piece[0])) continue;
    let finished;
    if (Object.hasOwn(CLOSING, piece)) {
      outer.push([into, piece, place]);
      into = [];
      checkDepth(outer.length, limits);
      continue;
    } else if (Object.hasOwn(PREFIXES, piece)) {
      outer.push([into, piece, place]);
      into = [new Name(PREFIXES[piece])];
      checkDepth(outer.length, limits);
      continue;
    } else if (piece === ")" || piece === "]") {
      if (!outer.length || CLOSING[outer.at(-1)[1]] !== piece)
        throw misplaced(source, named, place, `unexpected closing delimiter '${piece}'`);
      finished = into;
      into = outer.pop()[0];
    } else if (piece[0] === '"') {
      if (piece.length < 2) throw misplaced(source, named, place, "unterminated string");
      finished = piece.slice(1, -1).replace(/\\([nt"\\])/g, (_, letter) => ESCAPED[letter]);
    } else {
      finished = atomOf(piece, limits);
    }
    into.push(finished);
    while (outer.length && Object.hasOwn(PREFIXES, outer.at(-1)[1])) {
      const quoted = into;
      into = outer.pop()[0];
      into.push(quoted);
    }
  }
  if (outer.length) {
    const [, opening, place] = outer.at(-1);
    const what = Object.hasOwn(CLOSING, opening) ? "unclosed delimiter" : "nothing follows";
    throw misplaced(source, named, place, `${what} '${opening}'`);
  }
  return forms;
}

function atomOf(piece, limits) {
  if (ATOMS.has(piece)) return ATOMS.get(piece);
  if ("+-.0123456789".includes(piece[0])) {
    try {
      const number = numberIn(piece, limits.max_integer_bits);
      if (number !== null) return number;
    } catch (error) {
      if (!(error instanceof TooManyBits)) throw error;
      throw passed("integer_bits", limits.max_integer_bits, limits.max_integer_bits + 1);
    }
  }
  return new Name(piece);
}

function checkDepth(depth, limits) {
  if (depth > limits.max_reader_depth) throw passed("reader_depth", limits.max_reader_depth, depth);
}

function misplaced(source, named, place, what) {
  const before = source.slice(0, place);
  const line = before.split("\n").length;
  const column = length(before.slice(before.lastIndexOf("\n") + 1)) + 1;
  return malformed(`${named}:${line}:${column}: ${what}`);
}
