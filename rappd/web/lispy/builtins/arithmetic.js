/** Numbers: integers of any size and finite floats. A boolean is none. */

import { passed, wrong } from "../errors.js";
import { bitLength, floorDivide, floorRemainder, quotient, SMALL } from "../number-format.js";
import { shortly } from "../printer.js";
import { cosine, logarithm, NoPower, power, sine } from "../float-math.js";
import { ANY, isNumber } from "../values.js";

const isInteger = (value) => typeof value === "bigint";
const isSmall = (number) => -SMALL < number && number < SMALL;

/** `value`, if it is a number; long ones are charged for. */
function numberOf(state, name, value) {
  if (!isNumber(value)) throw wrong(`${name}: not a number: ${shortly(value)}`);
  if (isInteger(value) && !isSmall(value)) {
    const bits = bitLength(value);
    if (bits >= 1024) state.work(bits >> 2);
  }
  return value;
}

/** A number of the language: not too long, and finite. */
function checked(state, name, result) {
  if (isInteger(result)) return isSmall(result) ? result : state.madeInteger(result);
  return state.finite(name, result);
}

function asFloat(name, number) {
  const real = Number(number);
  if (!Number.isFinite(real)) throw wrong(`${name}: the result is out of range`);
  return real;
}

/** An operation on two integers or, when one of them is a float, on two floats. */
function onEither(name, ofIntegers, ofFloats, { divides = false } = {}) {
  return (a, b) => {
    const areIntegers = isInteger(a) && isInteger(b);
    const [x, y] = areIntegers ? [a, b] : [asFloat(name, a), asFloat(name, b)];
    if (divides && y == 0) throw wrong(`${name}: division by zero`); // 0n as well
    return areIntegers ? ofIntegers(x, y) : ofFloats(x, y);
  };
}

/** `(op a b c)` from the left; `(op)` is `empty`; `(op a)` of - and / starts from `lone`. */
function folding(name, operation, { empty = null, lone = null, before = () => {} }) {
  return (state, args) => {
    if (!args.length) return empty;
    let total = numberOf(state, name, args[0]);
    if (args.length === 1) return lone === null ? total : checked(state, name, operation(lone, total));
    for (let index = 1; index < args.length; index += 1) {
      const other = numberOf(state, name, args[index]);
      before(state, total, other);
      total = checked(state, name, operation(total, other));
    }
    return total;
  };
}

/** Refuses a product that would be too long, before it is made. */
function checkProduct(state, a, b) {
  if (isInteger(a) && isInteger(b) && a && b && !(isSmall(a) && isSmall(b))) {
    const limit = state.limits.max_integer_bits;
    const bits = bitLength(a) + bitLength(b) - 1;
    if (bits > limit) throw passed("integer_bits", limit, bits);
  }
}

function binary(name, ofIntegers, ofFloats) {
  const operation = onEither(name, ofIntegers, ofFloats, { divides: true });
  return (state, args) => {
    const [a, b] = args.map((argument) => numberOf(state, name, argument));
    return checked(state, name, operation(a, b));
  };
}

/** Remainder of the floored division a / b, with the sign of `b`. */
function floatRemainder(a, b) {
  const rest = a % b;
  if (rest === 0) return b < 0 ? -0 : 0;
  return b < 0 !== rest < 0 ? rest + b : rest;
}

function floatFloorDivide(a, b) {
  const rest = a % b;
  let divided = (a - rest) / b;
  if (rest !== 0 && b < 0 !== rest < 0) divided -= 1;
  if (divided === 0) return a / b < 0 || Object.is(a / b, -0) ? -0 : 0;
  const floored = Math.floor(divided);
  return divided - floored > 0.5 ? floored + 1 : floored;
}

function expt(state, args) {
  const [base, exponent] = args.map((argument) => numberOf(state, "expt", argument));
  if (isInteger(base) && isInteger(exponent) && exponent >= 0n) {
    if (base > 1n || base < -1n) {
      const limit = state.limits.max_integer_bits;
      const bits = BigInt(bitLength(base) - 1) * exponent + 1n;
      if (bits > limit) {
        const most = BigInt(Number.MAX_SAFE_INTEGER);
        throw passed("integer_bits", limit, Number(bits < most ? bits : most));
      }
      return state.madeInteger(base ** exponent);
    }
    return base ** (exponent < 2n ? exponent : 2n - (exponent % 2n));
  }
  try {
    return state.finite("expt", power(asFloat("expt", base), asFloat("expt", exponent)));
  } catch (error) {
    if (!(error instanceof NoPower)) throw error;
    throw wrong(`expt: ${error.message}`);
  }
}

function absolute(state, [value]) {
  const number = numberOf(state, "abs", value);
  if (!isInteger(number)) return Math.abs(number);
  return number < 0n ? -number : number;
}

function extreme(name, isBetter) {
  return (state, args) => {
    let best = numberOf(state, name, args[0]);
    for (const argument of args.slice(1)) {
      const number = numberOf(state, name, argument);
      if (isBetter(number, best)) best = number;
    }
    return best;
  };
}

function toInteger(name, operation) {
  return (state, [value]) => {
    const number = numberOf(state, name, value);
    return state.madeInteger(isInteger(number) ? number : BigInt(operation(number)));
  };
}

/** The nearest whole number; of two the even one. */
function rounded(number) {
  const below = Math.floor(number);
  const over = number - below;
  if (over !== 0.5) return over < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

function real(name, operation) {
  return (state, [value]) => state.finite(name, operation(asFloat(name, numberOf(state, name, value))));
}

function squareRoot(x) {
  if (x < 0) throw wrong("sqrt: the result is not a real number");
  return Math.sqrt(x);
}

/** `(log x)`, the natural one, or `(log x base)`. */
function log(state, args) {
  const numbers = args.map((argument) => numberOf(state, "log", argument));
  if (numbers.some((number) => number <= 0)) throw wrong("log: not above zero");
  const [size, base] = numbers.map(logarithm);
  if (base === undefined) return size;
  if (base === 0) throw wrong("log: division by zero");
  return state.finite("log", size / base);
}

const sign =
  (name, test) =>
  (state, [value]) =>
    test(numberOf(state, name, value));

const modulo = (name) => binary(name, floorRemainder, floatRemainder);

const divide = onEither("/", quotient, (a, b) => a / b, { divides: true });
const add = onEither(
  "+",
  (a, b) => a + b,
  (a, b) => a + b,
);
const subtract = onEither(
  "-",
  (a, b) => a - b,
  (a, b) => a - b,
);
const multiply = onEither(
  "*",
  (a, b) => a * b,
  (a, b) => a * b,
);

export const BUILTINS = {
  "+": [folding("+", add, { empty: 0n }), 0, ANY],
  "*": [folding("*", multiply, { empty: 1n, before: checkProduct }), 0, ANY],
  "-": [folding("-", subtract, { lone: 0n }), 1, ANY],
  "/": [folding("/", divide, { lone: 1n }), 1, ANY],
  "//": [binary("//", floorDivide, floatFloorDivide), 2, 2],
  "%": [modulo("%"), 2, 2],
  mod: [modulo("modulo"), 2, 2],
  modulo: [modulo("modulo"), 2, 2],
  remainder: [
    binary(
      "remainder",
      (a, b) => a % b,
      (a, b) => a % b,
    ),
    2,
    2,
  ],
  expt: [expt, 2, 2],
  pow: [expt, 2, 2],
  abs: [absolute, 1, 1],
  max: [extreme("max", (a, b) => a > b), 1, ANY],
  min: [extreme("min", (a, b) => a < b), 1, ANY],
  round: [toInteger("round", rounded), 1, 1],
  floor: [toInteger("floor", Math.floor), 1, 1],
  ceil: [toInteger("ceil", Math.ceil), 1, 1],
  sqrt: [real("sqrt", squareRoot), 1, 1],
  sin: [real("sin", sine), 1, 1],
  cos: [real("cos", cosine), 1, 1],
  log: [log, 1, 2],
  "zero?": [sign("zero?", (number) => number == 0), 1, 1],
  "positive?": [sign("positive?", (number) => number > 0), 1, 1],
  "negative?": [sign("negative?", (number) => number < 0), 1, 1],
};
