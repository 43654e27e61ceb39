/** Finished things, with what undoes them. Errors never come here. */

import { actionButton, h, withCode } from "../../lib/dom.js";

const SECONDS = 6;
const AT_ONCE = 3;
const SAME_MS = 5000;
const shown = new Map(); // text → when
const place = document.getElementById("toasts");

// Scrolled content ends above the toasts, so that nothing stays under them.
new ResizeObserver(() =>
  document.documentElement.style.setProperty("--toasts", `${place.offsetHeight}px`),
).observe(place);

/**
 * Shows `text` for `seconds`, longer while the pointer or the focus is on it. `actions` are
 * `{label, run}`; choosing one closes the toast. `focus` puts the keyboard on the first action. Returns what closes it.
 */
export function toast(text, { actions = [], seconds = SECONDS, focus = false } = {}) {
  const now = Date.now();
  if (now - (shown.get(text) ?? 0) < SAME_MS && !actions.length) return () => undefined;
  if (recent(text)) recent(text).remove();
  shown.set(text, now);
  keepReachable();

  const back = document.activeElement;
  const element = h("div", { class: "toast" }, h("p", {}, withCode(text)));
  const close = () => {
    if (!element.isConnected) return;
    const held = element.contains(document.activeElement);
    element.remove();
    if (held) focusNear(back);
  };
  for (const { label, run } of actions) {
    element.append(actionButton(label, () => (close(), run()), "quiet"));
  }
  pauseable(element, seconds * 1000, close);
  element.dataset.text = text;
  element.addEventListener(
    "keydown",
    (event) => event.key === "Escape" && (event.preventDefault(), event.stopPropagation(), close()),
  );

  while (place.children.length >= AT_ONCE) place.firstElementChild.remove();
  const foot = document.querySelector(".chat-foot")?.offsetHeight ?? 0; // with the message box, which stays free
  place.style.setProperty("--foot", `${foot}px`);
  place.append(element);
  if (focus) element.querySelector("button")?.focus();
  return close;
}

/**
 * Puts toasts and announcements into the topmost open dialog: while it is open, nothing outside of it is read out or can
 * be pressed. Without one they stand in the page.
 */
export function keepReachable() {
  const top = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  for (const element of [place, document.getElementById("live")]) {
    if (element.parentElement !== top) top.append(element);
  }
}

/** Gives the focus back, as near as it can go: it cannot leave an open dialog. */
function focusNear(back) {
  const dialog = place.closest("dialog");
  const near = (dialog ?? document.body).contains(back);
  (near ? back : (dialog?.querySelector("h2") ?? document.getElementById("main"))).focus();
}

function recent(text) {
  return [...document.querySelectorAll(".toast")].find((element) => element.dataset.text === text);
}

function pauseable(element, ms, close) {
  let left = ms;
  let since = 0;
  let timer = 0;
  const run = () => {
    if (element.matches(":hover") || element.contains(document.activeElement)) return;
    clearTimeout(timer);
    since = performance.now();
    timer = setTimeout(close, left);
  };
  const hold = () => {
    if (!timer) return;
    clearTimeout(timer);
    timer = 0;
    left = Math.max(1000, left - (performance.now() - since));
  };
  element.addEventListener("pointerenter", hold);
  element.addEventListener("focusin", hold);
  element.addEventListener("pointerleave", run);
  element.addEventListener("focusout", () => setTimeout(run));
  since = performance.now();
  timer = setTimeout(close, left);
}
