/** The keyboard: single keys (which can be switched off), and Esc. */

import { h } from "../../lib/dom.js";
import { keep, kept } from "../../lib/storage.js";
import { openSheet } from "../ui/dialog.js";

const CHORD_MS = 1500;
const EDITABLE = "input, textarea, select, [contenteditable]";

/** Whether `/`, `?` and `g` work; Enter and Esc always do. */
export const singleKeys = {
  get: () => kept("single-keys", true),
  set: (on) => keep("single-keys", on),
};

/** Listens. `actions` are `write()`, `escape()` and `visit(id)`. */
export function startKeys(pages, actions) {
  let chord = 0;
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return; // the sheet has the keyboard
    if (event.key === "Escape") {
      if (actions.escape()) event.preventDefault();
      return;
    }
    if (!singleKeys.get() || event.target.closest?.(EDITABLE)) return;
    const afterG = performance.now() - chord < CHORD_MS && chord > 0;
    chord = 0;
    if (afterG) {
      const page = pages.find(({ key, alias }) => event.key === key || event.key === alias);
      if (page) actions.visit(page.id);
      else return;
    } else if (event.key === "g") chord = performance.now();
    else if (event.key === "/") actions.write();
    else if (event.key === "?") openKeys(pages);
    else return;
    event.preventDefault();
  });
}

/** The list of keys. */
export function openKeys(pages) {
  const rows = [
    ["Enter", "send"],
    ["Shift+Enter", "new line"],
    ["Esc", "stop, or close"],
    ["/", "write"],
    ["?", "this list"],
    ...pages.map(({ key, title }) => [`g ${key}`, title]),
  ];
  openSheet({
    title: "Keys",
    build: () =>
      h(
        "div",
        { class: "sheet-body" },
        h(
          "dl",
          { class: "keys" },
          rows.map(([key, does]) =>
            h(
              "div",
              {},
              h(
                "dt",
                {},
                key.split(" ").map((one) => h("kbd", {}, one)),
              ),
              h("dd", {}, does),
            ),
          ),
        ),
        singleKeysSwitch(),
      ),
  });
}

/** The switch for single keys. */
export function singleKeysSwitch() {
  const field = h("input", { type: "checkbox", role: "switch" });
  field.checked = singleKeys.get();
  field.addEventListener("change", () => singleKeys.set(field.checked));
  return h(
    "label",
    { class: "switch" },
    h("span", {}, "Single keys ", h("span", { class: "soft" }, "( / , ? and g )")),
    field,
  );
}
