/** Navigation (bar and tabs on a phone): the daemon's name and state, and the pages. */

import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon, visuallyHidden } from "../../lib/dom.js";
import { openShortcuts } from "./keyboard-shortcuts.js";
import { devices } from "../devices/devices-state.js";
import { machines } from "../machines/machines-state.js";
import { waiting } from "../waiting/waiting-state.js";
import { menuButton } from "../ui/menu.js";
import { nameOf, chatTarget } from "../chat/chat-target.js";
import { twins } from "../twins/twins-state.js";

/** Fills the navigation; `mark(id)` highlights a page. `search()` opens the search. */
export function navigation(element, pages, search) {
  const state = h("span", { class: "state" });
  const name = h("span", { class: "name" });
  const pick = h("button", {
    type: "button",
    class: "quiet name pick",
    onclick: async () => (await import("../chat/chat-target-dialog.js")).openChatTargets(),
    hidden: true,
  });
  const find = actionButton(
    [icon("search"), h("span", {}, "Search"), h("kbd", { "aria-hidden": "true" }, "/")],
    search,
    "quiet search-open",
  );
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
    rare.map(({ id, title, count }) => ({ label: [title, count?.() || ""].join(" ").trim(), href: `#/${id}` })),
  );
  const urgent = h("span", { class: "count", "aria-hidden": "true" });
  more.classList.add("more");
  more.firstElementChild.prepend(icon("more"));
  more.firstElementChild.append(urgent);
  fill(
    element,
    h("div", { class: "identity" }, icon("mark", "mark"), name, pick, state, find),
    h("nav", { "aria-label": "Pages" }, [...links.values()].map(({ link }) => link), more),
    h(
      "div",
      { class: "navigation-foot" },
      thinking,
      actionButton(
        [h("kbd", {}, "?"), " Shortcuts"],
        () => openShortcuts(pages),
        "quiet",
        { "aria-label": "Keyboard shortcuts" },
      ),
    ),
  );
  const draw = () => {
    fill(name, daemon.name);
    fill(pick, h("span", {}, nameOf(chatTarget.key)), h("span", {}, " ▾"));
    pick.setAttribute("aria-label", `${nameOf(chatTarget.key)}, choose another`);
    pick.hidden = twins.rows.length === 0 && !chatTarget.key;
    fill(
      state,
      h(
        "span",
        { class: daemon.awake ? "sign good" : "sign soft", "aria-hidden": "true" },
        daemon.awake ? "●" : "○",
      ),
      daemon.awake ? " running" : " not answering",
    );
    fill(thinking, daemon.thinking && ["Model: ", daemon.thinking]);
    for (const { count, page } of links.values()) {
      const number = daemon.health && page.count?.(daemon.health);
      fill(
        count,
        number
          ? [String(number), visuallyHidden(` ${number === 1 ? page.counted.slice(0, -1) : page.counted}`)]
          : null,
      );
    }
    const open = pages.filter((page) => page.urgent).reduce((sum, page) => sum + page.count(), 0);
    fill(urgent, open ? String(open) : null);
    more.firstElementChild.setAttribute("aria-label", open ? `More pages, ${open} waiting for you` : "More pages");
    for (const { link, page } of links.values())
      if (page.rest) link.href = `#/${[page.id, ...page.rest()].map(encodeURIComponent).join("/")}`;
  };
  for (const source of [daemon, twins, machines, devices, waiting, chatTarget]) source.addEventListener("change", draw);
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
