/** Announcements for screen readers: one polite live region, each message once, and none that is stale. */

const JOIN_MS = 60;
const KEPT_MS = 10_000; // who reads the page by hand finds no news of long ago in the region
let waiting = 0;
let pending = [];

/** Announces `text`. The region is emptied first, so that equal texts are read again; texts of one moment are joined. */
export function announce(text) {
  const region = document.getElementById("live");
  clearTimeout(waiting);
  region.textContent = "";
  const words = text.trim();
  if (words && !pending.includes(words)) pending.push(words);
  waiting = setTimeout(() => {
    region.textContent = pending.join(" ");
    pending = [];
    waiting = setTimeout(() => (region.textContent = ""), KEPT_MS);
  }, JOIN_MS);
}
