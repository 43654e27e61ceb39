/** Announcements for screen readers: one polite live region, each message once, and none that is stale. */

const JOIN_MS = 60;
const KEPT_MS = 10_000; // who reads the page by hand finds no news of long ago in the region
const pending = new Map(); // what a text is about → the text
let waiting = 0;

/**
 * Announces `text`. The region is emptied first, so that equal texts are read again; texts of one moment are joined, and
 * of those `about` the same thing only the last is still true.
 */
export function announce(text, about = text) {
  const region = document.getElementById("live");
  clearTimeout(waiting);
  region.textContent = "";
  pending.delete(about);
  const words = text.trim();
  if (words) pending.set(about, words);
  waiting = setTimeout(() => {
    region.textContent = [...pending.values()].join(" ");
    pending.clear();
    waiting = setTimeout(() => (region.textContent = ""), KEPT_MS);
  }, JOIN_MS);
}
