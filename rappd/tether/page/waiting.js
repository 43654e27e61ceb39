// What waits for the owner, for phones that may see it: news are dismissed here, the rest is answered on the computer.

import { element } from "./element.js";

/** Builds the list; `update()` draws what changed. */
export function waiting(session, machine) {
  const title = element("summary", {});
  const rows = element("ul", {});
  const more = element("p", { className: "hint" });
  const list = element("details", { className: "workflows owners", hidden: true }, title, rows, more);
  let drawn = "";
  const update = () => {
    const now = session.waiting;
    list.hidden = !now.may || now.rows.length === 0;
    const next = JSON.stringify(now.rows);
    if (next === drawn) return;
    drawn = next;
    const count = now.rows.length + now.more;
    title.textContent = `Waiting for you: ${count}`;
    more.textContent = now.more ? `and ${now.more} more on ${machine}` : "";
    const held = rows.contains(document.activeElement);
    rows.replaceChildren(...now.rows.map((one) => row(one, session, machine)));
    if (held) (rows.querySelector("button") ?? title).focus();
  };
  return { list, update };
}

function row({ key, what, news }, session, machine) {
  const words = element("span", {}, what);
  if (!news) return element("li", {}, words, element("span", { className: "hint" }, `Answer it on ${machine}.`));
  return element("li", {}, words, element("button", {
    type: "button",
    ariaLabel: `Dismiss: ${what}`,
    onclick: () => session.dismiss(key),
  }, "Dismiss"));
}
