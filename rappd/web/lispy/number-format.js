/** Numbers as text, the same in every runtime, and the whole-number arithmetic that JavaScript lacks. */

export const INTEGER = /^[+-]?[0-9]+(?:_[0-9]+)*$/;
const FLOAT =
  /^[+-]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?$/;

/** Integers below are never held to a limit, and cost nothing beyond their step. */
export const SMALL_BITS = 256;
export const SMALL = 1n << 256n;

/** An integer has more bits than it may. */
export class TooManyBits extends Error {}

/** The number written in `text`, or null. Throws TooManyBits. */
export function numberIn(text, maxBits) {
  if (INTEGER.test(text)) {
    const digits = text.replaceAll("_", "");
    if (digits.replace(/^[+\-0]+/, "").length > mostDigits(maxBits)) throw new TooManyBits();
    const number = whole(digits);
    if (bitLength(number) > maxBits) throw new TooManyBits();
    return number;
  }
  if (FLOAT.test(text)) {
    const real = Number(text.replaceAll("_", ""));
    return Number.isFinite(real) ? real : null;
  }
  return null;
}

/** The integer that decimal digits, with or without a sign, stand for. */
export function whole(digits) {
  return digits[0] === "-" ? -BigInt(digits.slice(1)) : BigInt(digits.replace("+", ""));
}

/** Maximum number of decimal digits of an integer of so many bits. */
export const mostDigits = (bits) => Math.floor((bits * 30103) / 100000) + 1;

/** A finite float: the fewest digits that give it back; exponents below 1e-4 and from 1e16. */
export function written(number) {
  if (number === 0) return Object.is(number, -0) ? "-0.0" : "0.0";
  const sign = number < 0 ? "-" : "";
  const [mantissa, power] = Math.abs(number).toExponential().split("e");
  const exponent = Number(power);
  const digits = mantissa.replace(".", "");
  if (exponent < -4 || exponent >= 16) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  if (digits.length <= exponent + 1) return `${sign}${digits.padEnd(exponent + 1, "0")}.0`;
  return `${sign}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}

const abs = (number) => (number < 0n ? -number : number);

/** Number of bits of an integer's magnitude. */
export function bitLength(number) {
  if (number === 0n) return 0;
  const digits = abs(number).toString(16);
  return (digits.length - 1) * 4 + 32 - Math.clz32(parseInt(digits[0], 16));
}

/** a / b, rounded down. */
export function floorDivide(a, b) {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

/** Remainder of floorDivide, with the sign of `b`. */
export function floorRemainder(a, b) {
  const rest = a % b;
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
}

const EXACT = 1n << 53n;

/** a / b of two integers as the nearest float; of two that are as near, the even one. May be infinite. */
export function quotient(a, b) {
  if (-EXACT <= a && a <= EXACT && -EXACT <= b && b <= EXACT) return Number(a) / Number(b);
  const negative = a < 0n !== b < 0n;
  const [top, bottom] = [abs(a), abs(b)];
  if (top === 0n) return negative ? -0 : 0;
  const shift = 55 - (bitLength(top) - bitLength(bottom)); // leaves 55 or 56 bits
  const shifted = shift >= 0 ? top << BigInt(shift) : top;
  const divisor = shift >= 0 ? bottom : bottom << BigInt(-shift);
  const bits = shifted / divisor;
  const isRest = shifted % divisor !== 0n;
  const unit = Math.max(bitLength(bits) - shift - 53, -1074); // the place of the result's last bit
  const size = assembled(rounded(bits, BigInt(unit + shift), isRest), unit);
  return negative ? -size : size;
}

/** `bits` without the last `dropped` ones, half to even. */
function rounded(bits, dropped, isRest) {
  const kept = bits >> dropped;
  const lost = bits - (kept << dropped);
  const half = 1n << (dropped - 1n);
  const up = lost > half || (lost === half && (isRest || (kept & 1n) === 1n));
  return up ? kept + 1n : kept;
}

const view = new DataView(new ArrayBuffer(8));

function assembled(mantissa, unit) {
  if (unit > 971 || (unit === 971 && mantissa >= EXACT)) return Infinity;
  const isSmall = mantissa < 1n << 52n; // below the normal floats, or nothing
  const bits = isSmall ? mantissa : (BigInt(unit + 1075) << 52n) + (mantissa - (1n << 52n));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}


/** A float as two integers: it is the first divided by the second, a power of 2. */
export function ratioOf(number) {
  if (typeof number === "bigint") return [number, 1n];
  view.setFloat64(0, number);
  const bits = view.getBigUint64(0);
  const field = Number((bits >> 52n) & 0x7ffn);
  let top = bits & ((1n << 52n) - 1n);
  if (field > 0) top += 1n << 52n;
  let power = (field || 1) - 1075;
  while (power < 0 && top !== 0n && (top & 1n) === 0n) {
    top >>= 1n;
    power += 1;
  }
  if (top === 0n) return [0n, 1n];
  if (number < 0) top = -top;
  return power >= 0 ? [top << BigInt(power), 1n] : [top, 1n << BigInt(-power)];
}

/** The 16 hexadecimal digits of a float, and back. */
export function floatBits(number) {
  view.setFloat64(0, number);
  return view.getBigUint64(0).toString(16).padStart(16, "0");
}

export function floatOf(digits) {
  view.setBigUint64(0, BigInt(`0x${digits}`));
  return view.getFloat64(0);
}
