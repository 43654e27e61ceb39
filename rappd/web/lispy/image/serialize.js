/** Writing a machine down, as `lispy-image/1.0`: see `agents/runtimes/lispy/image/__init__.py`. */

import { compare, length } from "../characters.js";
import { FIELDS } from "../frames.js";
import { SMALL } from "../number-format.js";
import { APPLY, DONE, EVALUATE, LANGUAGE } from "../state.js";
import { isUnchanged } from "../builtins/table.js";
import { Builtin, Closure, Combined, Macro, Name, Pair } from "../values.js";
import { atomToWire } from "../value-codec.js";

export const SCHEMA = "lispy-image/1.0";

// Longer strings and names are written once, in the heap; so are integers that are not small.
const LONG = 64;

/** The image. The same state always gives the same one, in this runtime and in others. */
export const freeze = (state) => new Writing(state).image();

/** An image as indented JSON: a line for each frame, scope and thing in the heap. */
export function imageText(image) {
  const lines = Object.entries(image).map(([key, held]) => {
    if (!Array.isArray(held) || !held.length) return `  ${JSON.stringify(key)}: ${JSON.stringify(held)}`;
    const items = held.map((item) => JSON.stringify(item)).join(",\n    ");
    return `  ${JSON.stringify(key)}: [\n    ${items}\n  ]`;
  });
  return `{\n${lines.join(",\n")}\n}\n`;
}

const hasParts = (value) =>
  Array.isArray(value) ||
  value instanceof Pair ||
  value instanceof Map ||
  value instanceof Closure ||
  value instanceof Combined;

function partsOf(value) {
  if (Array.isArray(value)) return value;
  if (value instanceof Map) return [...value.values()];
  return value instanceof Combined ? value.parts : [value.form];
}

/** Numbers things as it meets them: parts before what holds them, scopes in the order they are seen. */
class Writing {
  constructor(state) {
    this.state = state;
    this.heap = [];
    this.places = new Map();
    this.long = new Map();
    this.scopes = [];
    this.scopePlaces = new Map();
  }

  image() {
    const { state } = this;
    this.scope(state.globals);
    const next = this.registers();
    const stack = state.stack.map((frame) => this.frame(frame));
    const inputs = state.inputs === null ? null : this.values(state.inputs);
    const scopes = [];
    for (const scope of this.scopes) scopes.push(this.writtenScope(scope)); // this.scopes grows meanwhile
    return {
      schema: SCHEMA,
      language: LANGUAGE,
      profile: state.profile,
      limits: { ...state.limits },
      usage: { steps: state.steps, peak_call_depth: state.peakCallDepth, cells: state.cells },
      output: state.output.join(""),
      inputs,
      next,
      stack,
      scopes,
      heap: this.heap,
    };
  }

  registers() {
    const { mode, form, scope, procedure, value, fault } = this.state;
    if (mode === EVALUATE) return { mode, form: this.value(form), scope: this.scope(scope) };
    if (mode === APPLY) {
      const applied = this.value(procedure);
      return { mode, procedure: applied, arguments: this.values(this.state.arguments) };
    }
    if (mode === DONE) return { mode, value: this.value(value) };
    return { mode, error: fault.asJson() };
  }

  frame(frame) {
    const { name, fields } = FIELDS[frame[0]];
    const written = { kind: name };
    fields.forEach(([field, holds], index) => {
      const held = frame[index + 1];
      if (holds === "scope") written[field] = this.scope(held);
      else if (holds === "own") written[field] = this.values(held);
      else written[field] = holds === "number" ? held : this.value(held);
    });
    return written;
  }

  scope(scope) {
    const chain = [];
    for (let around = scope; around !== null && !this.scopePlaces.has(around); around = around.parent)
      chain.push(around);
    for (const met of chain.reverse()) {
      this.scopePlaces.set(met, this.scopes.length);
      this.scopes.push(met);
    }
    return this.scopePlaces.get(scope);
  }

  writtenScope({ bindings, parent }) {
    let bound = [...bindings];
    if (parent === null)
      bound = bound.filter(([name, value]) => !isUnchanged(name, value)).sort(([a], [b]) => compare(a, b));
    return {
      parent: parent === null ? null : this.scopePlaces.get(parent),
      bindings: bound.map(([name, value]) => [name, this.value(value)]),
    };
  }

  values(values) {
    return values.map((value) => this.value(value));
  }

  value(value) {
    if (hasParts(value)) return { tag: "ref", id: this.places.get(value) ?? this.added(value) };
    if (value instanceof Builtin) return { tag: "builtin", name: value.name };
    return this.isLong(value) ? this.longAtom(value) : atomToWire(value);
  }

  isLong(value) {
    if (typeof value === "bigint") return value >= SMALL || value <= -SMALL;
    const text = value instanceof Name ? value.text : value;
    return typeof text === "string" && text.length > LONG && length(text) > LONG;
  }

  longAtom(value) {
    const key =
      value instanceof Name ? `symbol ${value.text}` : typeof value === "string" ? `string ${value}` : value;
    let place = this.long.get(key);
    if (place === undefined) {
      place = this.heap.length;
      this.long.set(key, place);
      this.heap.push(atomToWire(value));
    }
    return { tag: "ref", id: place };
  }

  /** Puts `root` into the heap, and before it what it holds; without recursion, however deep. */
  added(root) {
    const isNew = (part) => hasParts(part) && !this.places.has(part);
    const waiting = [root];
    while (waiting.length) {
      const value = waiting.at(-1);
      if (this.places.has(value)) {
        waiting.pop();
        continue;
      }
      const before = waiting.length;
      if (value instanceof Pair) {
        if (isNew(value.cdr)) waiting.push(value.cdr);
        else if (isNew(value.car)) waiting.push(value.car);
      } else {
        const parts = partsOf(value);
        for (let index = parts.length - 1; index >= 0; index -= 1)
          if (isNew(parts[index])) waiting.push(parts[index]);
      }
      if (waiting.length > before) continue;
      waiting.pop();
      const written = this.written(value); // may put long atoms before it
      this.places.set(value, this.heap.length);
      this.heap.push(written);
    }
    return this.places.get(root);
  }

  written(value) {
    if (value instanceof Pair) {
      const car = this.value(value.car);
      return { tag: "pair", car, cdr: this.value(value.cdr) };
    }
    if (Array.isArray(value)) return { tag: "list", items: this.values(value) };
    if (value instanceof Map)
      return { tag: "map", entries: [...value].map(([key, held]) => [this.value(key), this.value(held)]) };
    if (value instanceof Combined)
      return { tag: "combined", kind: value.kind, parts: this.values(value.parts) };
    const form = this.value(value.form);
    return { tag: value instanceof Macro ? "macro" : "closure", form, scope: this.scope(value.scope) };
  }
}
