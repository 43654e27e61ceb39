/** Strings by whole characters, as the language counts them, over JavaScript's halves of some. */

const HALVES = /[\ud800-\udfff]/;
const NOT_ASCII = /[^\x00-\x7f]/;
const encoder = new TextEncoder();

/** Number of characters in `text`. */
export function length(text) {
  if (!HALVES.test(text)) return text.length;
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** The characters from `start` up to `end`. */
export function slice(text, start, end) {
  return HALVES.test(text) ? Array.from(text).slice(start, end).join("") : text.slice(start, end);
}

/** True if no surrogate is alone. */
export const isWhole = (text) => !HALVES.test(text) || text.isWellFormed();

/** Number of UTF-8 bytes in `text`. */
export const byteLength = (text) => (NOT_ASCII.test(text) ? encoder.encode(text).length : text.length);

/** Below, at or above zero, as `a` comes before `b` by code point, is it, or comes after it. */
export function compare(a, b) {
  const shared = Math.min(a.length, b.length);
  for (let place = 0; place < shared; place += 1) {
    const [x, y] = [a.charCodeAt(place), b.charCodeAt(place)];
    if (x !== y) return inOrder(x) - inOrder(y);
  }
  return a.length - b.length;
}

/** Halves stand for characters above all whole ones. */
function inOrder(unit) {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
