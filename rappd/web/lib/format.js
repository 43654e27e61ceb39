/** Times as this project writes them (14:02, 0.8 s, 20 Nov), and foreign text that is harmless for what stands around it. */

const HOUR = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** A moment as the daemon writes it: ISO text, or µs since the epoch. */
export const moment = (when) => new Date(typeof when === "number" && when > 1e14 ? when / 1000 : when);

/** "14:02" */
export const clock = (when) => HOUR.format(moment(when));

/** "Today", "Yesterday", "Friday 20 November" */
export function day(when, now = new Date()) {
  const then = moment(when);
  const between = Math.round((midnight(now) - midnight(then)) / 86_400_000);
  if (between === 0) return "Today";
  return between === 1 ? "Yesterday" : DAY.format(then);
}

/** "14:02" today, "20 Nov" before */
export function timeOrDay(when, now = new Date()) {
  const then = moment(when);
  return midnight(then) === midnight(now) ? clock(then) : SHORT_DAY.format(then);
}

/** "today", "20 Nov", "20 Nov 2024" */
export function onDay(when, now = new Date()) {
  const then = moment(when);
  if (midnight(then) === midnight(now)) return "today";
  const year = then.getFullYear();
  return `${SHORT_DAY.format(then)}${year === now.getFullYear() ? "" : ` ${year}`}`;
}

/** "2 ms", "0.8 s", "12 s", "2 min 5 s" */
export function duration(seconds) {
  if (seconds < 0.1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function midnight(when) {
  return moment(when).setHours(0, 0, 0, 0);
}

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
export const withArticle = (word) => `${/^[aeio]/i.test(word) ? "an" : "a"} ${word}`;

/** "soul.md, bonds.json and 3 more" */
export function joinNames(names, most = 3) {
  const more = names.length - most;
  return more > 0 ? `${names.slice(0, most).join(", ")} and ${more} more` : names.join(", ");
}

/** The first sentence of a description: a model is told more of an agent than a list needs. */
export function firstSentence(text) {
  const line = String(text ?? "").trim().split("\n")[0];
  return /^.*?[.!?](?=\s|$)/.exec(line)?.[0] ?? line;
}

/** Characters that change direction, break lines, or are invisible. */
const STEERING = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** Foreign text without what would steer how the text around it is shown. */
export const stripControl = (text) => String(text ?? "").replace(STEERING, "");

/** Foreign text of several lines, tamed. */
export const stripControlLines = (text) =>
  String(text ?? "")
    .split(/\r?\n/)
    .map(stripControl)
    .join("\n");
