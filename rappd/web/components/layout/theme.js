/** Light, dark, or as the device has it. A cookie tells the daemon too, so that the page begins in the right one. */

import { h } from "../../lib/dom.js";
import { onStoredElsewhere, store, stored } from "../../lib/storage.js";

const COOKIE = "rappd_theme";
const YEAR = 365 * 24 * 3600;
const PAPER = { light: "#FAF7F0", dark: "#181613" };
const CHOICES = { "": "As this device", light: "Light", dark: "Dark" };

/** Puts the stored choice into force, and keeps it so when another tab changes it. */
export function startTheme() {
  apply(stored("theme", ""));
  onStoredElsewhere("theme", (choice) => apply(choice ?? ""));
}

/** The choice between the three. */
export function themeChoice() {
  const now = stored("theme", "");
  return h(
    "fieldset",
    { class: "setting themes" },
    h("legend", { class: "visually-hidden" }, "Colours"),
    h("p", { "aria-hidden": "true" }, "Colours"),
    h(
      "div",
      { class: "segments" },
      Object.entries(CHOICES).map(([value, title]) => {
        const input = h("input", { type: "radio", name: "theme", value, checked: value === now });
        input.addEventListener("change", () => chooseTheme(value));
        return h("label", { class: "segment" }, input, h("span", {}, title));
      }),
    ),
  );
}

/** Stores "light", "dark" or "" (as the device has it), and puts it into force. */
export function chooseTheme(choice) {
  store("theme", choice || null);
  apply(choice);
}

function apply(choice) {
  for (const input of document.querySelectorAll(".themes input")) input.checked = input.value === choice;
  const root = document.documentElement;
  if (choice in PAPER) root.dataset.theme = choice;
  else delete root.dataset.theme;
  const age = choice ? YEAR : 0;
  document.cookie = `${COOKIE}=${choice}; path=/; max-age=${age}; SameSite=Strict`;
  for (const meta of document.querySelectorAll("meta[name=theme-color]")) {
    meta.dataset.system ??= meta.content;
    meta.content = PAPER[choice] ?? meta.dataset.system;
  }
}
