// Announcements for screen readers: one polite live region, each message once, and none that is stale.

const JOIN_MS = 60;
const KEPT_MS = 10_000;
let waiting = 0;
let pending = [];

/** Announces `text`; texts of one moment are joined, unless it stands `instead` of what was there before. */
export function announce(text, { instead = false } = {}) {
  const region = document.getElementById("live");
  clearTimeout(waiting);
  region.textContent = "";
  if (instead) pending = [];
  if (text && !pending.includes(text)) pending.push(text);
  waiting = setTimeout(() => {
    region.textContent = pending.join(" ");
    pending = [];
    waiting = setTimeout(() => (region.textContent = ""), KEPT_MS);
  }, JOIN_MS);
}
