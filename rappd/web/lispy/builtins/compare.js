/** Equality, order and kinds of values. */

import { compare } from "../characters.js";
import { areEqual, isSame } from "../equality.js";
import { wrong } from "../errors.js";
import { shortly } from "../printer.js";
import { ANY, isNumber, isProcedure, Name, Pair } from "../values.js";

function equal(state, args) {
  for (let index = 1; index < args.length; index += 1)
    if (!areEqual(state, args[index - 1], args[index])) return false;
  return true;
}

const notEqual = (state, args) => !equal(state, args);

/** True if the comparison holds between each argument and the next; all numbers or all strings. */
function ordered(name, ofNumbers, ofOrder) {
  return (state, args) => {
    const isText = typeof args[0] === "string";
    for (const argument of args)
      if (isText ? typeof argument !== "string" : !isNumber(argument))
        throw wrong(`${name}: not a ${isText ? "string" : "number"}: ${shortly(argument)}`);
    for (let index = 1; index < args.length; index += 1) {
      const [a, b] = [args[index - 1], args[index]];
      if (!(isText ? ofOrder(compare(a, b)) : ofNumbers(a, b))) return false;
    }
    return true;
  };
}

const isNull = (state, [value]) => value === null || (Array.isArray(value) && !value.length);

/** nil, and a list, map or string that holds nothing. */
const isEmpty = (state, [value]) =>
  value === null ||
  value === "" ||
  (Array.isArray(value) && !value.length) ||
  (value instanceof Map && !value.size);

const is = (test) => [(state, [value]) => test(value), 1, 1];

export const BUILTINS = {
  "=": [equal, 1, ANY],
  "!=": [notEqual, 1, ANY],
  "equal?": [equal, 2, 2],
  "eq?": [(state, [a, b]) => isSame(a, b), 2, 2],
  "<": [
    ordered(
      "<",
      (a, b) => a < b,
      (order) => order < 0,
    ),
    1,
    ANY,
  ],
  "<=": [
    ordered(
      "<=",
      (a, b) => a <= b,
      (order) => order <= 0,
    ),
    1,
    ANY,
  ],
  ">": [
    ordered(
      ">",
      (a, b) => a > b,
      (order) => order > 0,
    ),
    1,
    ANY,
  ],
  ">=": [
    ordered(
      ">=",
      (a, b) => a >= b,
      (order) => order >= 0,
    ),
    1,
    ANY,
  ],
  not: is((value) => value === null || value === false),
  "null?": [isNull, 1, 1],
  "empty?": [isEmpty, 1, 1],
  identity: is((value) => value),
  "boolean?": is((value) => typeof value === "boolean"),
  "number?": is(isNumber),
  "integer?": is((value) => typeof value === "bigint"),
  "string?": is((value) => typeof value === "string"),
  "symbol?": is((value) => value instanceof Name),
  "list?": is(Array.isArray),
  "pair?": is((value) => value instanceof Pair),
  "dict?": is((value) => value instanceof Map),
  "procedure?": is(isProcedure),
};
