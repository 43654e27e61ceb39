/** Reading a machine back. Nothing in an image is believed: what does not hold together is refused. */

import { byteLength, isWhole } from "../characters.js";
import { isSound } from "./checking.js";
import { BadImage, BadValue, CATEGORIES, Fault } from "../errors.js";
import { BODY, DOTIMES, FIELDS, PIPE, UNLESS, WHEN } from "../frames.js";
import { SCHEMA } from "./serialize.js";
import { limitsOf, PUBLISHED, within } from "../limits.js";
import { arrayIn, bad, exactly, numberIn, objectIn, Parts } from "./image-heap.js";
import { BEGINS } from "../profiles.js";
import { APPLY, DONE, EVALUATE, FAILED, LANGUAGE, State } from "../state.js";
import { BUILTINS, INPUT_BUILTINS, startingGlobals } from "../builtins/table.js";

const KEYS = [
  "schema",
  "language",
  "profile",
  "limits",
  "usage",
  "output",
  "inputs",
  "next",
  "stack",
  "scopes",
  "heap",
];
const KINDS = new Map(FIELDS.map(({ name }, kind) => [name, kind]));
const RAPPTERBOOK_ONLY = new Set([WHEN, UNLESS, PIPE, DOTIMES]);

/** The machine in `image`. Throws BadImage for anything that no machine within `ceiling` wrote. */
export function thaw(image, ceiling) {
  try {
    return new Reading(image, ceiling).state();
  } catch (error) {
    if (error instanceof BadValue) return bad("a value", error.message);
    throw error;
  }
}

class Reading {
  constructor(image, ceiling) {
    this.image = objectIn(image, "the image");
    this.ceiling = ceiling;
  }

  state() {
    const { image } = this;
    if (image.schema !== SCHEMA) bad("schema", `not ${SCHEMA}`);
    exactly(image, KEYS, "the image");
    if (image.language !== LANGUAGE) bad("language", `not ${LANGUAGE}`);
    if (!BEGINS.has(image.profile)) bad("profile", "not a known one");
    this.limits = this.readLimits();
    const withInput = image.inputs !== null;
    const first = startingGlobals(withInput);
    this.parts = new Parts(this.limits, withInput ? INPUT_BUILTINS : BUILTINS, first);
    this.parts.read(image.scopes, image.heap);
    const inputs = withInput ? this.parts.values(image.inputs, "inputs") : null;
    const state = new State(this.limits, image.profile, first, inputs);
    arrayIn(image.stack, "stack").forEach((written, place) => {
      state.stack.push(this.frame(objectIn(written, `stack ${place}`), `stack ${place}`));
    });
    this.readOutput(state);
    this.readRegisters(state);
    this.readUsage(state);
    return state;
  }

  readLimits() {
    const given = objectIn(this.image.limits, "limits");
    exactly(given, Object.keys(PUBLISHED), "limits");
    let limits;
    try {
      limits = limitsOf(given);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      bad("limits", error.message);
    }
    if (!within(limits, this.ceiling))
      throw new BadImage(
        "This program wants more than is allowed here; nothing was run.",
        "Lower the limits in its image, or allow more.",
      );
    return limits;
  }

  readOutput(state) {
    const { output } = this.image;
    if (typeof output !== "string") bad("output", "not text");
    if (!isWhole(output)) bad("output", "it holds half a character");
    state.outputBytes = byteLength(output);
    if (state.outputBytes > this.limits.max_output_bytes) bad("output", "longer than its limit");
    state.output = output ? [output] : [];
  }

  readUsage(state) {
    const usage = objectIn(this.image.usage, "usage");
    exactly(usage, ["steps", "peak_call_depth", "cells"], "usage");
    state.steps = numberIn(usage.steps, "usage steps");
    state.peakCallDepth = numberIn(usage.peak_call_depth, "usage peak_call_depth");
    state.cells = numberIn(usage.cells, "usage cells");
    const spare = state.mode === FAILED ? 1 : 0; // the step, or call, that was one too many
    const depth = state.stack.filter((frame) => frame[0] === BODY).length;
    if (state.steps > this.limits.max_steps + spare) bad("usage steps", "above its limit");
    if (depth > state.peakCallDepth || state.peakCallDepth > this.limits.max_call_depth + spare)
      bad("usage peak_call_depth", "not what the stack shows, or above its limit");
  }

  readRegisters(state) {
    const written = objectIn(this.image.next, "next");
    const { mode } = written;
    if (mode === EVALUATE) {
      exactly(written, ["mode", "form", "scope"], "next");
      state.form = this.parts.value(written.form, "next form");
      state.scope = this.parts.scope(written.scope, "next scope");
    } else if (mode === APPLY) {
      exactly(written, ["mode", "procedure", "arguments"], "next");
      state.procedure = this.parts.value(written.procedure, "next procedure");
      state.arguments = this.parts.values(written.arguments, "next arguments");
    } else if (mode === DONE) {
      exactly(written, ["mode", "value"], "next");
      state.value = this.parts.value(written.value, "next value");
    } else if (mode === FAILED) {
      exactly(written, ["mode", "error"], "next");
      state.fault = this.fault(objectIn(written.error, "next error"));
    } else {
      bad("next", "no known mode");
    }
    state.mode = mode;
    if ((mode === DONE || mode === FAILED) && state.stack.length)
      bad("next", "it has ended, and yet something waits");
  }

  fault(written) {
    const where = "next error";
    exactly(written, ["category", "message", "resource", "limit", "used"], where);
    const { category, resource, limit, used } = written;
    if (!CATEGORIES.has(category)) bad(where, "no known category");
    if (resource === null) {
      if (limit !== null || used !== null) bad(where, "a limit of nothing");
    } else {
      this.parts.text(resource, where);
      numberIn(limit, where);
      numberIn(used, where);
    }
    return new Fault(category, this.parts.text(written.message, where), { resource, limit, used });
  }

  frame(written, where) {
    const kind = KINDS.get(written.kind);
    if (kind === undefined) bad(where, "no known kind");
    const { fields } = FIELDS[kind];
    exactly(written, ["kind", ...fields.map(([field]) => field)], where);
    const frame = [kind];
    for (const [field, holds] of fields) {
      const given = written[field];
      if (holds === "number") {
        frame.push(kind === DOTIMES && given === -1 ? -1 : numberIn(given, where));
      } else if (holds === "scope") {
        frame.push(this.parts.scope(given, where));
      } else if (holds === "own") {
        frame.push(this.parts.values(given, where));
      } else {
        const value = this.parts.value(given, where);
        if (holds === "list" && !Array.isArray(value)) bad(where, `${field} is not a list`);
        if (holds === "map" && !(value instanceof Map)) bad(where, `${field} is not a map`);
        frame.push(value);
      }
    }
    if (RAPPTERBOOK_ONLY.has(kind) && this.image.profile === "core") bad(where, "not of this profile");
    if (!isSound(frame)) bad(where, "its parts do not go together");
    return frame;
  }
}
