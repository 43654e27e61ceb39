/** Every builtin and constant by name, and the globals that a program starts with. */

import * as arithmetic from "./arithmetic.js";
import { compare } from "../characters.js";
import * as comparing from "./compare.js";
import * as higher from "./higher-order.js";
import * as host from "./host.js";
import * as jsonText from "./json-text.js";
import * as lists from "./lists.js";
import * as maps from "./maps.js";
import * as texts from "./strings.js";
import { Builtin, Scope } from "../values.js";

const CONSTANTS = new Map([
  ["#t", true],
  ["#f", false],
  ["true", true],
  ["false", false],
  ["nil", null],
  ["pi", Math.PI],
  ["e", Math.E],
]);

/** The names that every program starts with, in order. */
const manifest = (state) => state.made([...NAMES]);

/** The builtins of a machine that cannot ask for input, by name. */
export const BUILTINS = new Map([["builtin-manifest", new Builtin("builtin-manifest", manifest, 0, 0)]]);
for (const module of [arithmetic, comparing, higher, host, jsonText, lists, maps, texts])
  for (const [name, entry] of Object.entries(module.BUILTINS))
    BUILTINS.set(name, new Builtin(name, ...entry));

/** The builtins of a machine that is handed inputs. */
export const INPUT_BUILTINS = new Map([
  ...BUILTINS,
  ["next-input", new Builtin("next-input", ...host.NEXT_INPUT)],
]);

export const NAMES = [...BUILTINS.keys(), ...CONSTANTS.keys()].sort(compare);

/** A new global scope: every builtin and constant. */
export const startingGlobals = (withInput) =>
  new Scope(new Map([...(withInput ? INPUT_BUILTINS : BUILTINS), ...CONSTANTS]), null);

/** True if a global still has its initial value. */
export function isUnchanged(name, value) {
  if (INPUT_BUILTINS.has(name)) return value === INPUT_BUILTINS.get(name);
  return CONSTANTS.has(name) && value === CONSTANTS.get(name);
}
