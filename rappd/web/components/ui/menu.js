/** A button with a menu: arrow keys, Home, End, Esc and Tab as menus have them. */

import { fill, h } from "../../lib/dom.js";

/**
 * `items()` gives what the menu holds now: `{label, run(opener)}`, `{label, href}`, or null for a line
 * between. Names of the button and the menu are `label` for screen readers.
 */
export function menuButton(text, label, items) {
  const list = h("div", { class: "menu", role: "menu", "aria-label": label, hidden: true });
  const button = h(
    "button",
    {
      type: "button",
      class: "quiet",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      "aria-label": label,
    },
    text,
    h("span", { "aria-hidden": "true" }, "▾"),
  );
  const element = h("span", { class: "menu-holder" }, button, list);

  const entries = () => [...list.querySelectorAll("[role=menuitem]")];
  const close = (back) => {
    if (list.hidden) return;
    list.hidden = true;
    button.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", elsewhere, true);
    if (back) button.focus();
  };
  const elsewhere = (event) => element.contains(event.target) || close(false);
  const open = (at) => {
    fill(
      list,
      items().map((item) => (item ? entry(item, close, button) : h("div", { role: "separator" }))),
    );
    list.hidden = false;
    button.setAttribute("aria-expanded", "true");
    document.addEventListener("pointerdown", elsewhere, true);
    list.scrollIntoView({ block: "nearest" });
    entries().at(at).focus();
  };

  button.addEventListener("click", () => (list.hidden ? open(0) : close(true)));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    open(event.key === "ArrowDown" ? 0 : -1);
  });
  list.addEventListener("keydown", (event) => {
    const all = entries();
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) all.at(to).focus();
    else if (event.key === "Escape") close(true);
    else if (event.key === "Tab") return close(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return element;
}

function entry({ label, run, href }, close, button) {
  const marks = { role: "menuitem", tabindex: -1 };
  if (href) return h("a", { ...marks, href, onclick: () => close(false) }, label);
  return h("button", { ...marks, type: "button", onclick: () => (close(true), run(button)) }, label);
}
