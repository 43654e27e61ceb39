/** Times as this project writes them: 14:02, 0.8 s, 20 Nov. */

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
export function shortly(when, now = new Date()) {
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
export function lasting(seconds) {
  if (seconds < 0.1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function midnight(when) {
  return moment(when).setHours(0, 0, 0, 0);
}
