/** The heap and the scopes of an image, and the values in it. What does not hold together is refused. */

import { isWhole } from "../characters.js";
import { BadImage, Fault } from "../errors.js";
import { mostDigits, SMALL_BITS } from "../number-format.js";
import {
  Closure,
  COMBINATIONS,
  Combined,
  DEEPEST_SCOPE,
  isProcedure,
  Macro,
  Name,
  Pair,
  Scope,
} from "../values.js";
import { atomFromWire } from "../value-codec.js";

const SPARE = 1_000; // the words of an error around a name

/** Refuses the image: `where` in it, and `what` is wrong there. */
export function bad(where, what) {
  throw new BadImage(`This image is damaged (${where}: ${what}); nothing was run.`);
}

/** Reads the heap, then gives the values that the rest of the image speaks of. */
export class Parts {
  constructor(limits, builtins, first) {
    this.builtins = builtins;
    this.mostDigits = mostDigits(Math.max(limits.max_integer_bits, SMALL_BITS)) + 1;
    // Literals of the source do not count towards the limit on values.
    this.longest = Math.max(limits.max_collection_items, limits.max_source_bytes) + SPARE;
    this.heap = [];
    this.scopes = [first];
  }

  /** Takes in all scopes and the heap; the scope it was made with becomes the first, the globals. */
  read(scopes, heap) {
    this.#makeScopes(arrayIn(scopes, "scopes"));
    arrayIn(heap, "heap").forEach((written, place) => {
      this.heap.push(this.#thing(objectIn(written, `heap ${place}`), `heap ${place}`));
    });
    this.#fillScopes(scopes);
  }

  /** The scope at `place`. */
  scope(place, where) {
    if (!Number.isInteger(place) || place < 0 || place >= this.scopes.length)
      bad(where, "there is no such scope");
    return this.scopes[place];
  }

  /** An array of values, as a list of its own. */
  values(written, where) {
    if (arrayIn(written, where).length > this.longest) bad(where, "longer than its limit");
    return written.map((one) => this.value(one, where));
  }

  /** One value: an atom, a builtin, or a thing of the heap. */
  value(written, where) {
    if (written === null || typeof written !== "object" || Array.isArray(written))
      bad(where, "a value has no tag");
    const { tag } = written;
    if (tag === "ref") {
      const { id } = written;
      if (Object.keys(written).length !== 2 || !Number.isInteger(id) || id < 0 || id >= this.heap.length)
        bad(where, "it refers to nothing before it");
      return this.heap[id];
    }
    if (tag === "builtin") {
      const found = this.builtins.get(this.text(written.name, where));
      if (Object.keys(written).length !== 2 || found === undefined) bad(where, "no known builtin");
      return found;
    }
    if (tag === "integer" || tag === "string" || tag === "symbol") {
      const text = this.text(written.value, where);
      if (tag === "integer" && text.length > this.mostDigits) bad(where, "an integer longer than its limit");
    } else if (tag !== "nil" && tag !== "boolean" && tag !== "float64") {
      bad(where, "not a value");
    }
    return atomFromWire(written);
  }

  /** Text of bearable length, in whole characters. */
  text(text, where) {
    if (typeof text !== "string") bad(where, "not text");
    if (text.length > 2 * this.longest) bad(where, "longer than its limit");
    if (!isWhole(text)) bad(where, "it holds half a character");
    return text;
  }

  #makeScopes(written) {
    if (!written.length) bad("scopes", "there are no globals");
    written.forEach((one, place) => {
      const where = `scope ${place}`;
      exactly(objectIn(one, where), ["parent", "bindings"], where);
      const { parent } = one;
      if (place === 0) {
        if (parent !== null) bad(where, "the globals have no parent");
        return;
      }
      if (!Number.isInteger(parent) || parent < 0 || parent >= place)
        bad(where, "its parent is not one before it");
      if (this.scopes[parent].depth >= DEEPEST_SCOPE) bad(where, "it lies too deep");
      this.scopes.push(new Scope(new Map(), this.scopes[parent]));
    });
  }

  #fillScopes(scopes) {
    scopes.forEach((written, place) => {
      const where = `scope ${place}`;
      const { bindings } = this.scopes[place];
      const met = new Set();
      for (const binding of arrayIn(written.bindings, where)) {
        if (!Array.isArray(binding) || binding.length !== 2)
          bad(where, "a binding is not a name and a value");
        const name = this.text(binding[0], where);
        if (met.has(name)) bad(where, "a name is bound twice");
        met.add(name);
        bindings.set(name, this.value(binding[1], where));
      }
    });
  }

  /** One thing of the heap; `this.heap` holds all that it may refer to. */
  #thing(written, where) {
    switch (written.tag) {
      case "list":
        exactly(written, ["tag", "items"], where);
        return this.values(written.items, where);
      case "pair":
        exactly(written, ["tag", "car", "cdr"], where);
        return new Pair(this.value(written.car, where), this.value(written.cdr, where));
      case "map":
        exactly(written, ["tag", "entries"], where);
        return this.#map(arrayIn(written.entries, where), where);
      case "closure":
      case "macro":
        exactly(written, ["tag", "form", "scope"], where);
        return this.#closure(written, where);
      case "combined":
        exactly(written, ["tag", "kind", "parts"], where);
        return this.#combined(written.kind, this.values(written.parts, where), where);
      case "string":
      case "symbol":
      case "integer":
        return this.value(written, where);
      default:
        return bad(where, "nothing that a heap holds");
    }
  }

  #map(entries, where) {
    if (entries.length > this.longest) bad(where, "longer than its limit");
    const found = new Map();
    for (const entry of entries) {
      if (!Array.isArray(entry) || entry.length !== 2) bad(where, "an entry is not a key and a value");
      const key = this.value(entry[0], where);
      if (typeof key !== "string" || found.has(key)) bad(where, "the keys are not different strings");
      found.set(key, this.value(entry[1], where));
    }
    return found;
  }

  #closure({ tag, form, scope }, where) {
    const held = this.value(form, where);
    if (!Array.isArray(held) || held.length < 2 || !(held[0] instanceof Name))
      bad(where, "not the form of a procedure");
    if (held[0].text !== "lambda") {
      if (held[0].text !== (tag === "macro" ? "define-macro" : "define"))
        bad(where, "not the form of a procedure");
      if (!Array.isArray(held[1]) || !(held[1][0] instanceof Name))
        bad(where, "a procedure's form has no name");
    }
    try {
      return new (tag === "macro" ? Macro : Closure)(held, this.scope(scope, where));
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return bad(where, error.message);
    }
  }

  #combined(kind, parts, where) {
    if (!COMBINATIONS.has(kind) || parts.length < COMBINATIONS.get(kind))
      bad(where, "not a known combination");
    if ((kind === "complement" || kind === "constantly") && parts.length !== 1)
      bad(where, "not a known combination");
    const inner = kind === "partial" ? parts.slice(0, 1) : kind === "constantly" ? [] : parts;
    if (!inner.every(isProcedure)) bad(where, "what it combines is no procedure");
    return new Combined(kind, parts);
  }
}

/** `written`, if it is a JSON object. */
export function objectIn(written, where) {
  if (written === null || typeof written !== "object" || Array.isArray(written)) bad(where, "not an object");
  return written;
}

/** `written`, if it is a JSON array. */
export function arrayIn(written, where) {
  if (!Array.isArray(written)) bad(where, "not an array");
  return written;
}

/** `written`, if it is a whole number that is not negative. */
export function numberIn(written, where) {
  if (!Number.isSafeInteger(written) || written < 0) bad(where, "not a number that counts");
  return written;
}

/** Refuses the image if the object has other keys than these. */
export function exactly(written, keys, where) {
  const missing = keys.find((key) => !Object.hasOwn(written, key));
  if (missing !== undefined) bad(where, `${missing} is missing`);
  if (Object.keys(written).length > keys.length) bad(where, "there is more in it than there may be");
}
