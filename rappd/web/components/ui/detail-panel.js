/** Detail panel: beside the column where 320 px are free, else in a dialog. */

import { fill, h, icon } from "../../lib/dom.js";
import { openDialog } from "./dialog.js";

const WIDE = matchMedia("(min-width: 1180px)");

let open = null;

/**
 * Shows `content` titled `title` in `aside` or a dialog. `closed()` is called when the reader closes it and has not
 * gone to another address since. Whatever was shown before goes without a word.
 */
export function showDetail(aside, { title, content, closed, focus = true }) {
  hideDetail();
  open = { closed, dialog: null, aside, opener: document.activeElement, address: location.hash };
  if (!WIDE.matches) {
    const mine = open;
    open.dialog = openDialog({ title, build: () => content, closed: () => open === mine && leave() });
    return;
  }
  const heading = h("h2", { tabindex: -1 }, title);
  const button = h(
    "button",
    { type: "button", class: "quiet only-icon", "aria-label": "Close details", onclick: closeDetail },
    icon("close"),
  );
  fill(
    aside,
    h("div", { class: "detail-inside" }, h("header", { class: "dialog-head" }, heading, button), content),
  );
  aside.hidden = false;
  if (focus) heading.focus();
}

/** Closes as the reader would; true when something was open. */
export function closeDetail() {
  if (!open) return false;
  if (open.dialog) open.dialog.close();
  else leave();
  return true;
}

/** Takes the details away without telling anybody. */
export function hideDetail() {
  if (!open) return;
  const { dialog, aside } = open;
  open = null;
  if (dialog) dialog.close();
  fill(aside).hidden = true;
}

function leave() {
  const { closed, opener, address } = open;
  hideDetail();
  if (location.hash !== address) return; // a dialog says later that it closed; by then one may be elsewhere
  closed?.();
  if (opener?.isConnected) opener.focus();
}
