/** Amounts as this project writes them: 3.1 MB, 137 files, 2 min ago. */

const UNITS = ["kB", "MB", "GB", "TB"];
const STEPS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86_400, 3600, "h"],
];
const NUMBER = new Intl.NumberFormat("en-GB");

/** "410 bytes", "3.1 MB", "212 GB" */
export function bytes(number) {
  if (number < 1000) return `${Math.round(number)} bytes`;
  let amount = number / 1000;
  let unit = 0;
  for (; amount >= 999.5 && unit < UNITS.length - 1; unit += 1) amount /= 1000;
  return `${amount < 9.95 ? amount.toFixed(1) : Math.round(amount)} ${UNITS[unit]}`;
}

/** "1 file", "1,204 files" */
export const count = (number, one, many = `${one}s`) =>
  `${NUMBER.format(number)} ${number === 1 ? one : many}`;

/** "12 s ago", "2 min ago", "3 h ago", "5 days ago", of a moment in seconds since 1970 */
export function ago(moment, now = Date.now() / 1000) {
  const seconds = Math.max(0, now - moment);
  for (const [limit, size, unit] of STEPS) {
    if (seconds < limit) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return `${count(Math.floor(seconds / 86_400), "day")} ago`;
}

/** "a twin", "an organism" */
export const a = (word) => `${/^[aeio]/i.test(word) ? "an" : "a"} ${word}`;

/** "soul.md, bonds.json and 3 more" */
export function some(names, most = 3) {
  const more = names.length - most;
  return more > 0 ? `${names.slice(0, most).join(", ")} and ${more} more` : names.join(", ");
}
