/** `lispy-value@1`: values as JSON objects that any runtime reads. Procedures have no such form. */

import { compare, isWhole } from "./characters.js";
import { BadValue, Fault, passed } from "./errors.js";
import { floatBits, floatOf, INTEGER, whole } from "./number-format.js";
import { kindOf, Name, Pair } from "./values.js";

/** Maximum nesting depth of values: JSON readers give up at about twice as many. */
const DEEPEST = 100;
const MOST_VALUES = 200_000;

/** The form of nil, a boolean, a number, a string or a symbol; null for anything else. */
export function atomToWire(value) {
  if (value instanceof Name) return { tag: "symbol", value: value.text };
  if (typeof value === "bigint") return { tag: "integer", value: value.toString() };
  if (typeof value === "string") return { tag: "string", value };
  if (value === null) return { tag: "nil" };
  if (typeof value === "boolean") return { tag: "boolean", value };
  if (typeof value === "number") return { tag: "float64", bits: floatBits(value) };
  return null;
}

/** Any value. Throws Fault (serialization, resource-limit) for procedures, great depth and size. */
export function toWire(value, depth = 0, seen = { count: 0 }) {
  seen.count += 1;
  if (seen.count > MOST_VALUES) throw passed("wire_values", MOST_VALUES, seen.count);
  const atom = atomToWire(value);
  if (atom !== null) return atom;
  if (depth >= DEEPEST) throw new Fault("serialization", `more than ${DEEPEST} values lie inside each other`);
  const inner = (part) => toWire(part, depth + 1, seen);
  if (Array.isArray(value)) return { tag: "list", items: value.map(inner) };
  if (value instanceof Pair) {
    const car = inner(value.car);
    return { tag: "pair", car, cdr: inner(value.cdr) };
  }
  if (value instanceof Map) {
    const entries = [...value].map(([key, held]) => [inner(key), inner(held)]);
    entries.sort(([a], [b]) => compare(JSON.stringify(a.value), JSON.stringify(b.value)));
    return { tag: "map", entries };
  }
  throw new Fault("serialization", `a ${kindOf(value)} cannot leave its machine`);
}

const ATOMS = {
  nil: [() => null, null],
  boolean: [booleanFrom, "value"],
  integer: [integerFrom, "value"],
  float64: [floatFrom, "bits"],
  string: [stringFrom, "value"],
  symbol: [(text) => new Name(stringFrom(text)), "value"],
};

/** The atom in `wire`, which has the tag of one. Throws BadValue. */
export function atomFromWire(wire) {
  const [read, field] = ATOMS[wire.tag];
  if (Object.keys(wire).length !== (field === null ? 1 : 2))
    throw new BadValue(`a ${wire.tag} has other fields`);
  return read(wire[field]);
}

/** The value; the opposite of `toWire`. Throws BadValue for anything that is not one. */
export function fromWire(wire, depth = 0) {
  if (wire === null || typeof wire !== "object" || typeof wire.tag !== "string")
    throw new BadValue("a value has no tag");
  if (Object.hasOwn(ATOMS, wire.tag)) return atomFromWire(wire);
  if (depth >= DEEPEST) throw new BadValue(`more than ${DEEPEST} values lie inside each other`);
  const inner = (part) => fromWire(part, depth + 1);
  const size = Object.keys(wire).length;
  if (wire.tag === "list" && size === 2 && Array.isArray(wire.items)) return wire.items.map(inner);
  if (wire.tag === "pair" && size === 3) {
    const car = inner(wire.car);
    return new Pair(car, inner(wire.cdr));
  }
  if (wire.tag === "map" && size === 2 && Array.isArray(wire.entries)) return mapFrom(wire.entries, inner);
  throw new BadValue("not a value");
}

function mapFrom(entries, inner) {
  const found = new Map();
  for (const entry of entries) {
    if (!Array.isArray(entry) || entry.length !== 2)
      throw new BadValue("a map's entry is not a key and a value");
    const key = inner(entry[0]);
    if (typeof key !== "string" || found.has(key))
      throw new BadValue("a map's keys must be different strings");
    found.set(key, inner(entry[1]));
  }
  return found;
}

function booleanFrom(value) {
  if (typeof value !== "boolean") throw new BadValue("a boolean must be true or false");
  return value;
}

function integerFrom(digits) {
  if (typeof digits !== "string" || digits.length > 100_000 || !INTEGER.test(digits))
    throw new BadValue("an integer must be written in digits");
  const number = whole(digits.replaceAll("_", ""));
  if (number.toString() !== digits) throw new BadValue("an integer must be written as short as can be");
  return number;
}

function floatFrom(bits) {
  if (typeof bits !== "string" || !/^[0-9a-f]{16}$/.test(bits))
    throw new BadValue("a float must be 16 hexadecimal digits");
  const number = floatOf(bits);
  if (!Number.isFinite(number)) throw new BadValue("a float must be finite");
  return number;
}

function stringFrom(text) {
  if (typeof text !== "string") throw new BadValue("a string must be text");
  if (!isWhole(text)) throw new BadValue("a string holds half a character");
  return text;
}
