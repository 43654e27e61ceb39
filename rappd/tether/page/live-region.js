// Announcements for screen readers: one polite live region, each message once, and none that is stale.

const JOIN_MS = 60;
const KEPT_MS = 10_000;
const pending = new Map(); // what a text is about → the text
let waiting = 0;

/** Announces `text`. Texts of one moment are joined; of those `about` the same thing only the last is still true. */
export function announce(text, about = text) {
  const region = document.getElementById("live");
  clearTimeout(waiting);
  region.textContent = "";
  pending.delete(about);
  if (text) pending.set(about, text);
  waiting = setTimeout(() => {
    region.textContent = [...pending.values()].join(" ");
    pending.clear();
    waiting = setTimeout(() => (region.textContent = ""), KEPT_MS);
  }, JOIN_MS);
}
