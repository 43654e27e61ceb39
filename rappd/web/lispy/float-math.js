/**
 * sin, cos, log and powers of floats from whole-number arithmetic alone, as in `agents/runtimes/lispy/float_math.py`: a
 * platform's own library may differ from another's in the last bit. 256 fraction bits, rounded once.
 */

import { bitLength, quotient, ratioOf } from "./number-format.js";

const BITS = 256;
const SHIFT = 256n;
const ONE = 1n << SHIFT;
const TINY = 2 ** -27; // below it, sin x rounds to x and cos x to 1
const LARGEST_EXACT_POWER = 64;

/** The reason why there is no power: division by zero, out of range, not a real number. */
export class NoPower extends Error {}

export function sine(x) {
  if (Math.abs(x) < TINY) return x;
  const [quadrant, angle] = reduced(x);
  return circular(quadrant, angle);
}

export function cosine(x) {
  if (Math.abs(x) < TINY) return 1;
  const [quadrant, angle] = reduced(x);
  return circular(quadrant + 1n, angle);
}

/** The natural logarithm of `x` > 0, an integer of any size or a float. */
export const logarithm = (x) => quotient(log(...ratioOf(x)), ONE);

/** `x` to the `y`. Throws NoPower. */
export function power(x, y) {
  if (y === 0 || x === 1) return 1;
  const isWhole = Number.isInteger(y);
  const isOdd = isWhole && Math.abs(y % 2) === 1;
  if (x === 0) {
    if (y < 0) throw new NoPower("division by zero");
    return isOdd ? x : 0;
  }
  if (x < 0 && !isWhole) throw new NoPower("the result is not a real number");
  const size = powerOf(Math.abs(x), y, isWhole);
  return x < 0 && isOdd ? -size : size;
}

function powerOf(x, y, isWhole) {
  const [top, bottom] = ratioOf(x);
  if (isWhole && Math.abs(y) <= LARGEST_EXACT_POWER) {
    const exponent = BigInt(Math.abs(y));
    const [above, below] = [top ** exponent, bottom ** exponent];
    return y > 0 ? quotient(above, below) : quotient(below, above);
  }
  const [factor, divisor] = ratioOf(y);
  const exponent = (log(top, bottom) * factor) >> BigInt(bitLength(divisor) - 1);
  if (exponent >= 1025n << SHIFT) throw new NoPower("the result is out of range");
  return exponent <= -(1100n << SHIFT) ? 0 : exp(exponent);
}

/** Number of quarter turns in `x` (modulo 4), and the remainder, in fraction bits. */
function reduced(x) {
  const [top, bottom] = ratioOf(x);
  const bits = BITS + Math.max(0, bitLength(top) - bitLength(bottom) + 1);
  const quarter = pi(bits) >> 1n;
  // The divisor is a power of 2: shifting rounds down for negative angles too.
  const angle = (top << BigInt(bits)) >> BigInt(bitLength(bottom) - 1);
  let turns = angle / quarter;
  let rest = angle % quarter;
  if (rest < 0n) {
    turns -= 1n;
    rest += quarter;
  }
  return [turns & 3n, rest >> BigInt(bits - BITS)];
}

/** sin of `angle` after so many quarter turns. */
function circular(quadrant, angle) {
  const square = (angle * angle) >> SHIFT;
  let [term, count] = (quadrant & 1n) === 1n ? [ONE, 0n] : [angle, 1n];
  let total = 0n;
  let sign = 1n;
  while (term !== 0n) {
    total += sign * term;
    term = ((term * square) >> SHIFT) / ((count + 1n) * (count + 2n));
    count += 2n;
    sign = -sign;
  }
  return quotient((quadrant & 2n) === 2n ? -total : total, ONE);
}

/** ln(top / bottom) in fraction bits. */
function log(top, bottom) {
  let exponent = bitLength(top) - bitLength(bottom);
  let part = scaled(top, bottom, exponent);
  if (part < ONE) {
    exponent -= 1;
    part = scaled(top, bottom, exponent);
  }
  return BigInt(exponent) * ln2() + 2n * artanh(((part - ONE) << SHIFT) / (part + ONE));
}

/** top / bottom / 2^exponent in fraction bits. */
function scaled(top, bottom, exponent) {
  return exponent >= 0
    ? (top << SHIFT) / (bottom << BigInt(exponent))
    : (top << BigInt(BITS - exponent)) / bottom;
}

function artanh(x) {
  const square = (x * x) >> SHIFT;
  let total = 0n;
  for (let count = 1n; x !== 0n; count += 2n) {
    total += x / count;
    x = (x * square) >> SHIFT;
  }
  return total;
}

function exp(x) {
  let doublings = x / ln2();
  let rest = x % ln2();
  if (rest < 0n) {
    doublings -= 1n;
    rest += ln2();
  }
  let total = 0n;
  let term = ONE;
  for (let count = 1n; term !== 0n; count += 1n) {
    total += term;
    term = ((term * rest) >> SHIFT) / count;
  }
  const shift = doublings - SHIFT;
  return shift >= 0n ? quotient(total << shift, 1n) : quotient(total, 1n << -shift);
}

let ln2Known = null;

function ln2() {
  ln2Known ??= 2n * artanh(ONE / 3n);
  return ln2Known;
}

const piKnown = new Map();

/** π in so many fraction bits, by Machin's formula. */
function pi(bits) {
  let known = piKnown.get(bits);
  if (known === undefined) {
    const one = 1n << BigInt(bits + 16);
    known = (16n * arctanOfInverse(5n, one) - 4n * arctanOfInverse(239n, one)) >> 16n;
    piKnown.set(bits, known);
  }
  return known;
}

function arctanOfInverse(n, one) {
  let total = 0n;
  let sign = 1n;
  let term = one / n;
  for (let count = 1n; term !== 0n; count += 2n) {
    total += sign * (term / count);
    term /= n * n;
    sign = -sign;
  }
  return total;
}
