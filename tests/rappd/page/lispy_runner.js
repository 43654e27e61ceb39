/** Runs LisPy machines for the tests: a JSON request a line on stdin, its answer a line on stdout. */

import { createInterface } from "node:readline";

import { BadImage } from "./machines/errors.js";
import { Machine } from "./machines/machine.js";
import { fromWire, toWire } from "./machines/value-codec.js";

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}

/**
 * `{source | image, limits?, profile?, inputs?, given?, steps?}` → `{outcome, image}` after so many steps or at
 * the end; with `every`, also `images` before each step. `{wire}` → the same wire, read and written anew.
 */
function answer(asked) {
  if (asked.wire !== undefined) return { wire: toWire(fromWire(asked.wire)) };
  let machine;
  try {
    machine = asked.image === undefined ? fresh(asked) : Machine.thaw(JSON.parse(asked.image));
  } catch (error) {
    if (!(error instanceof BadImage)) throw error;
    return { refused: error.message };
  }
  if (asked.given) machine.give(...asked.given.map((wire) => fromWire(wire)));
  const images = [];
  while (asked.every && machine.outcome.status === "paused") {
    images.push(machine.freezeText());
    machine.step();
  }
  const outcome = machine.run(asked.steps ?? Infinity);
  return { outcome, image: machine.freezeText(), images };
}

function fresh({ source, limits = {}, profile = "core", inputs }) {
  return new Machine(source, { limits, profile, inputs: inputs?.map((wire) => fromWire(wire)) ?? null });
}
