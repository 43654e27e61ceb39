/** Variables kept between frames: `env` for readers, `env_wire` exact. */

import { BadValue, Fault } from "../../lispy/errors.js";
import { isProcedure, Macro } from "../../lispy/values.js";
import { fromWire, toWire } from "../../lispy/value-codec.js";
import { fromObjects, isJson, levels, same, toObjects } from "./json.js";
import { BadCartridge } from "./problem.js";

const DEEPEST = 60; // levels of a kept value; a file allows some more around it
const GIVEN = new Set(["prev-result", "echo-frame", "agent-id", "prior-echo"]);

/** The value that `wire`, as the file has it, stands for. Throws BadCartridge. */
export function valueOf(wire) {
  if (wire === undefined || wire === null) return null;
  try {
    return fromWire(toObjects(wire));
  } catch (found) {
    if (!(found instanceof BadValue)) throw found;
    throw new BadCartridge(`The cartridge is damaged: ${found.message}; nothing was run.`, "Mend it.");
  }
}

/** The value as the file has it; null for what has no such form, or one too deep. */
export function wired(value) {
  try {
    const wire = fromObjects(toWire(value));
    return levels(wire) <= DEEPEST ? wire : null;
  } catch (found) {
    if (!(found instanceof Fault)) throw found;
    return null;
  }
}

/** Variables of earlier frames. A value edited in `env` wins over the exact one; `note` is called. */
export function earlier(document, note) {
  const plain = document.get("env") ?? new Map();
  const exact = document.get("env_wire");
  if (exact === undefined) return new Map(plain); // as published
  const found = new Map([...exact].map(([name, wire]) => [name, valueOf(wire)]));
  for (const [name, value] of plain) {
    if (found.has(name) && same(found.get(name), value)) continue;
    note(`${name} was changed by hand.`);
    found.set(name, value);
  }
  return found;
}

/** Edits made to `env` while the machine was frozen. */
export function overruled(document) {
  if (!document.get("continuation")?.get("image")) return [];
  const plain = document.get("env") ?? new Map();
  return [...(document.get("env_wire") ?? [])]
    .filter(([name, wire]) => plain.has(name) && !same(plain.get(name), valueOf(wire)))
    .map(([name]) => `${name} was changed by hand; the paused program goes on with its own.`);
}

/** Writes down what a machine that is done knows under `names`. */
export function keepGlobals(document, machine, names, note) {
  const plain = new Map();
  const exact = new Map();
  for (const name of names) {
    if (GIVEN.has(name)) continue;
    const value = machine.lookup(name);
    const wire = wired(value);
    if (wire !== null) {
      exact.set(name, wire);
      if (isJson(value)) plain.set(name, value);
    } else if (!isProcedure(value) && !(value instanceof Macro)) {
      note(`${name} cannot be kept from frame to frame.`);
    }
  }
  document.set("env", plain).set("env_wire", exact);
}
