/** Labels of cartridges and of the state of their programs. */

import { count } from "../../lib/format.js";
import { h } from "../../lib/dom.js";

/** Choices for the steps that a program may take. */
export const FUEL = [100_000, 1_000_000, 10_000_000, 100_000_000];

const steps = (number) => count(number, "step");

/** One sentence on where it stands. */
export function standing(cartridge) {
  const { state, problem } = cartridge;
  if (state === "ready") return "Nothing runs yet.";
  if (state === "running") return "It runs.";
  if (state === "paused") return `Paused after ${steps(cartridge.steps)}${PAUSED.get(cartridge.kept)}`;
  if (state === "waiting") return "It waits for your answer.";
  if (state === "failed") return problem.category ? failed(problem, cartridge) : problem.message;
  return `Done in ${steps(cartridge.steps)}.`;
}

const GOES_ON = "It goes on from exactly here, also on another machine.";
const PAUSED = new Map([
  [null, `. ${GOES_ON}`],
  [true, `, and kept in this browser. ${GOES_ON}`],
  [false, ". It is too large for this browser to keep: save it as a file."],
]);

const OVER = {
  call_depth: "It called itself, within itself, more often than it may",
  output_bytes: "It wrote more than it may",
  cells: "It wanted more memory than it may have",
  collection_items: "It made something longer than it may",
  integer_bits: "It made a number longer than it may",
  reader_depth: "Its text is nested too deep",
  source_bytes: "Its text is too long",
};

function failed({ category, message, resource, limit }) {
  if (resource === "steps") return `It reached its limit of ${steps(limit)} and was stopped.`;
  if (category === "resource-limit")
    return `${OVER[resource] ?? "It used more than it may"}, and was stopped.`;
  if (category === "syntax") return `The program cannot be read: ${message}.`;
  return `The program ended with a mistake: ${message}.`;
}

/** Advice after a program failed; "" for none. */
export function advice({ problem }) {
  if (!problem.category) return problem.todo;
  const same = "The cartridge is as it was before.";
  return problem.resource === "steps" ? `${same} Let it go further, and run it again.` : same;
}

/** The signature of the opened file, as nodes. */
export function signed(signer) {
  const good = h("span", { class: "sign good" }, "✓ ");
  const note = h("span", { class: "sign warn" }, "! ");
  if (!signer) return [note, "Not signed: no file that ends in .sig came with it."];
  const { standing: known, signed: sentence, unknown } = signer;
  if (unknown) return [note, "Whether it is signed could not be looked up."];
  const text = sentence.replace(/^./, (first) => first.toUpperCase());
  if (known === "self" || known === "trusted") return [good, `${text}, as it was opened.`];
  return [note, `${text}.`];
}

/** "3 runs done, the last one saved on 20 Nov" in parts. */
export const runs = (frame) => (frame ? `${count(frame, "run")} done` : "has not run yet");
