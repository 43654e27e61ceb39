/** Announcements for screen readers: one polite live region, each message once. */

let waiting = 0;

/** Announces `text`. The region is emptied first, so that equal texts are read again. */
export function announce(text) {
  const region = document.getElementById("live");
  clearTimeout(waiting);
  region.textContent = "";
  waiting = setTimeout(() => {
    region.textContent = text;
  }, 60);
}
