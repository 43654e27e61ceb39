/** A dialog that asks for a few words and then does something with them. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { attemptIn } from "./problem.js";
import { openDialog } from "./dialog.js";

let count = 0;

/**
 * Opens a dialog. `fields` are made by `field`; `run()` does it, and its problem is told in the dialog;
 * when it worked the dialog closes. `before` and `after` stand around the fields. `wide` for much text.
 */
export function formDialog({ title, verb, fields, run, before = null, after = null, wide = false }) {
  const errorPlace = h("div", {});
  const button = h("button", { type: "submit", class: "primary" }, verb);
  const build = (close) => {
    const form = h(
      "form",
      { class: "dialog-body" },
      before,
      fields.map(({ element }) => element),
      after,
      errorPlace,
      h("div", { class: "dialog-actions" }, actionButton("Cancel", close), button),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (button.disabled) return;
      button.disabled = true;
      const done = await attemptIn(errorPlace, run);
      button.disabled = false;
      if (done) close();
    });
    return form;
  };
  const dialog = openDialog({ title, build, wide });
  fields[0]?.input.focus();
  fields[0]?.input.select?.();
  return dialog;
}

/** A labelled input; `tag` may be "textarea" or "select". `options` for a select; `help` is read with it. */
export function field(label, { tag = "input", value = "", help = "", options = [], ...more } = {}) {
  const id = `field-${++count}`;
  const input = h(tag, {
    id,
    ...(tag === "input" && { type: "text", autocomplete: "off", spellcheck: "false" }),
    "aria-describedby": help ? `${id}-help` : null,
    ...more,
  });
  fill(input, options.map((one) => h("option", { value: one }, one)));
  if (value || tag !== "select") input.value = value;
  return {
    input,
    element: h(
      "div",
      { class: "field" },
      h("label", { for: id }, label),
      input,
      help && h("p", { class: "soft", id: `${id}-help` }, help),
    ),
  };
}
