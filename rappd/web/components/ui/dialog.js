/** A modal dialog (`<dialog>`): closes by Esc, its button, or a click beside it; gives the focus back. */

import { actionButton, h, icon } from "../../lib/dom.js";
import { keepReachable } from "./toast.js";

let count = 0;

/**
 * Opens a dialog titled `title`. `build(close)` gives its content. Returns the dialog; it is removed
 * when closed, after `closed()` was called.
 */
export function openDialog({ title, build, wide = false, closed = () => undefined }) {
  const label = `dialog-${++count}`;
  const opener = document.activeElement;
  const dialog = h("dialog", { class: wide ? "dialog wide" : "dialog", "aria-labelledby": label });
  const close = () => dialog.close();
  dialog.append(
    h(
      "div",
      { class: "dialog-inside" },
      h(
        "header",
        { class: "dialog-head" },
        h("h2", { id: label, tabindex: -1, autofocus: true }, title),
        actionButton(icon("close"), close, "quiet only-icon", { "aria-label": "Close" }),
      ),
      build(close),
    ),
  );
  dialog.addEventListener("click", (event) => event.target === dialog && close());
  dialog.addEventListener("close", () => {
    keepReachable();
    dialog.remove();
    closed();
    if (opener?.isConnected) opener.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  keepReachable();
  return dialog;
}
