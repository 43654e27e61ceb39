/** The rail (bar and tabs on a phone): who this is, whether it is awake, and the pages. */

import { desk } from "../../lib/daemon-state.js";
import { fill, h, icon, unseen } from "../../lib/dom.js";
import { openKeys } from "./keyboard-shortcuts.js";
import { machines } from "../machines/machines.js";
import { menuButton } from "../ui/menu.js";
import { nameOf, partner } from "../chat/chat-target.js";
import { openPartners } from "../chat/chat-target-dialog.js";
import { twins } from "../twins/twins.js";

/** Fills the rail; `mark(id)` says which page is shown. */
export function rail(element, pages) {
  const state = h("span", { class: "state" });
  const name = h("span", { class: "name" });
  const pick = h("button", { type: "button", class: "quiet name pick", onclick: openPartners, hidden: true });
  const thinking = h("a", { class: "thinking", href: "#/settings" });
  const links = new Map();
  for (const page of pages) {
    const count = h("span", { class: "count" });
    const link = h(
      "a",
      { href: `#/${page.id}`, class: page.rare ? "place rare" : "place" },
      icon(page.icon),
      h("span", {}, page.title),
      count,
    );
    links.set(page.id, { link, count, page });
  }
  const rare = pages.filter((page) => page.rare);
  const more = menuButton("More", "More pages", () =>
    rare.map(({ id, title }) => ({ label: title, href: `#/${id}` })),
  );
  more.classList.add("more");
  more.firstElementChild.prepend(icon("more"));
  fill(
    element,
    h("div", { class: "identity" }, icon("mark", "mark"), name, pick, state),
    h(
      "nav",
      { "aria-label": "Places" },
      [...links.values()].map(({ link }) => link),
      more,
    ),
    h(
      "div",
      { class: "rail-foot" },
      thinking,
      h(
        "button",
        { type: "button", class: "quiet", onclick: () => openKeys(pages), "aria-label": "Keys" },
        h("kbd", {}, "?"),
        " Keys",
      ),
    ),
  );
  const draw = () => {
    fill(name, desk.name);
    fill(pick, h("span", {}, nameOf(partner.key)), h("span", {}, " ▾"));
    pick.setAttribute("aria-label", `${nameOf(partner.key)}, choose another`);
    pick.hidden = twins.rows.length === 0 && !partner.key;
    fill(
      state,
      h(
        "span",
        { class: desk.awake ? "sign good" : "sign soft", "aria-hidden": "true" },
        desk.awake ? "●" : "○",
      ),
      desk.awake ? " awake" : " not answering",
    );
    fill(thinking, desk.thinking && ["Thinking: ", desk.thinking]);
    for (const { count, page } of links.values()) {
      const number = desk.health && page.count?.(desk.health);
      fill(count, number ? [String(number), unseen(` ${number === 1 ? page.counted.slice(0, -1) : page.counted}`)] : null);
    }
    for (const { link, page } of links.values())
      if (page.rest) link.href = `#/${[page.id, ...page.rest()].map(encodeURIComponent).join("/")}`;
  };
  for (const source of [desk, twins, machines, partner]) source.addEventListener("change", draw);
  draw();
  return {
    mark(id) {
      more.classList.toggle(
        "current",
        rare.some((page) => page.id === id),
      );
      for (const [known, { link }] of links) {
        if (known === id) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
    },
  };
}
