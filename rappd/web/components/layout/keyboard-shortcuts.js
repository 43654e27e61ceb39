/** Keyboard shortcuts: single keys (which can be switched off), and Esc. */

import { h } from "../../lib/dom.js";
import { store, stored } from "../../lib/storage.js";
import { openDialog } from "../ui/dialog.js";

const CHORD_MS = 1500;
const EDITABLE = "input, textarea, select, [contenteditable]";

/** Setting for the shortcuts `/`, `c`, `?` and `g`; Enter, Esc and Ctrl+K always work. */
const singleKeyShortcuts = {
  get: () => stored("single-keys", true),
  set: (on) => store("single-keys", on),
};

/** Listens. `actions` are `search()`, `write()`, `escape()` and `visit(id)`. */
export function startShortcuts(pages, actions) {
  let chord = 0;
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      actions.search();
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return; // the dialog has the keyboard
    if (event.key === "Escape") {
      if (actions.escape()) event.preventDefault();
      return;
    }
    if (!singleKeyShortcuts.get() || event.target.closest?.(EDITABLE)) return;
    const afterG = performance.now() - chord < CHORD_MS && chord > 0;
    chord = 0;
    if (afterG) {
      const page = pages.find(({ key, alias }) => event.key === key || event.key === alias);
      if (page) actions.visit(page.id);
      else return;
    } else if (event.key === "g") chord = performance.now();
    else if (event.key === "/") actions.search();
    else if (event.key === "c") actions.write();
    else if (event.key === "?") openShortcuts(pages);
    else if (event.key === "m") chooseModel();
    else return;
    event.preventDefault();
  });
}

/** Opens the list of shortcuts. */
export function openShortcuts(pages) {
  const groups = {
    "While you write": [
      ["Enter", "send"],
      ["Shift+Enter", "new line"],
      ["Esc", "stop, or close"],
    ],
    Anywhere: [
      ["/", "search everything"],
      ["Ctrl+K", "search everything"],
      ["c", "write"],
      ["m", "choose the model"],
      ["?", "this list"],
    ],
    "Go to": pages.map(({ key, title }) => [`g ${key}`, title]),
    "In lists and menus": [
      ["Tab", "next"],
      ["Shift+Tab", "back"],
      ["↑ ↓", "within a menu"],
    ],
  };
  openDialog({
    title: "Keyboard shortcuts",
    wide: true,
    build: () =>
      h(
        "div",
        { class: "dialog-body" },
        h(
          "div",
          { class: "key-groups" },
          Object.entries(groups).map(([title, rows]) =>
            h("section", {}, h("h3", {}, title), h("dl", { class: "keys" }, rows.map(keyRow))),
          ),
        ),
        shortcutsSwitch(),
      ),
  });
}

const keyRow = ([key, does]) =>
  h(
    "div",
    {},
    h("dt", {}, key.split(" ").map((one) => h("kbd", {}, one))),
    h("dd", {}, does),
  );

/** The switch for single keys. */
export function shortcutsSwitch() {
  const field = h("input", { type: "checkbox", role: "switch" });
  field.checked = singleKeyShortcuts.get();
  field.addEventListener("change", () => singleKeyShortcuts.set(field.checked));
  return h(
    "label",
    { class: "switch" },
    h("span", {}, "Single-key shortcuts ", h("span", { class: "soft" }, "( / , c, m, ? and g )")),
    field,
  );
}

/** Opens the list of models: for the conversation that is shown, else for everybody. */
async function chooseModel() {
  const picker = document.querySelector(".model-picker:not([hidden])");
  if (picker) picker.click();
  else (await import("../models/model-dialog.js")).openModels();
}
