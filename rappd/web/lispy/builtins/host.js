/** Output, input that was handed in, errors, and what a program may know about its machine. */

import { length } from "../characters.js";
import { passed, wrong } from "../errors.js";
import { displayed, TooLong } from "../printer.js";
import { LANGUAGE } from "../state.js";
import { asText } from "./strings.js";
import { ANY } from "../values.js";

/** `next-input` was applied, and nothing is there yet; the state says so too. */
export class NoInput extends Error {}

function print(state, args) {
  const limit = state.limits.max_output_bytes;
  args.forEach((argument, number) => {
    let text = argument;
    if (typeof argument !== "string") {
      try {
        text = displayed(argument, limit - state.outputBytes);
      } catch (error) {
        if (!(error instanceof TooLong)) throw error;
        throw passed("output_bytes", limit, limit + 1);
      }
    }
    state.write(number ? ` ${text}` : text);
  });
  return null;
}

function println(state, args) {
  print(state, args);
  return newline(state);
}

function newline(state) {
  state.write("\n");
  return null;
}

/** Ends the program with what it is given, as a person reads it. */
function error(state, args) {
  const text = args.map((argument) => asText(state, argument)).join(" ");
  state.fits(length(text));
  throw wrong(text);
}

/** The same on every runtime that a program may move to. */
const runtimeInfo = (state) =>
  state.madeMap(
    new Map([
      ["language", LANGUAGE],
      ["profile", state.profile],
      ["runtime", "rappd"],
    ]),
  );

/** Access of a program to its host: none. */
const capabilities = (state) => state.made([]);

const usage = (state) =>
  state.madeMap(
    new Map([
      ["steps", BigInt(state.steps)],
      ["peak_call_depth", BigInt(state.peakCallDepth)],
      ["output_bytes", BigInt(state.outputBytes)],
    ]),
  );

/** The next of the values that were handed in; the machine waits where there is none. */
function nextInput(state) {
  if (!state.inputs?.length) throw new NoInput();
  return state.inputs.shift();
}

export const BUILTINS = {
  display: [print, 1, ANY],
  print: [print, 1, ANY],
  println: [println, 0, ANY],
  newline: [newline, 0, 0],
  error: [error, 1, ANY],
  "runtime-info": [runtimeInfo, 0, 0],
  capabilities: [capabilities, 0, 0],
  "execution-usage": [usage, 0, 0],
};

export const NEXT_INPUT = [nextInput, 0, 0];
