/** Sessions with phones: which one phones join, and going back to an older one. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { clock, count, day } from "../../lib/format.js";
import * as operations from "../../lib/operations.js";
import { keyedList } from "../ui/keyed-list.js";
import { attemptIn } from "../ui/problem.js";
import { sessions } from "./sessions-state.js";

/** `element` is hidden while there is none; `close()` when it leaves the page. */
export function sessionList() {
  const trouble = h("div", {});
  const list = keyedList("ul", "cards", ({ id }) => id, (row) => card(row, trouble));
  const element = h("section", { class: "group after-cards", hidden: true }, h("h2", {}, "Sessions"), trouble, list.element);
  const draw = () => {
    element.hidden = !sessions.rows.length;
    list.show(sessions.rows);
  };
  sessions.addEventListener("change", draw);
  draw();
  return {
    element,
    close() {
      sessions.removeEventListener("change", draw);
      list.close();
    },
  };
}

function card(row, trouble) {
  const title = h("h3", {});
  const state = h("p", {});
  const open = actionButton("Bring phones here", () => attemptIn(trouble, reopen));
  const element = h(
    "li",
    { class: "card machine", "data-session": row.id },
    h("div", { class: "card-words" }, title, state),
    h("div", { class: "card-actions" }, open, h("a", { class: "button quiet", href: `#/chat/session/${row.id}` }, "Show")),
  );
  const reopen = async () => {
    await operations.sessions.reopen({ id: row.id });
    await sessions.touch();
  };
  const update = (newer) => {
    row = newer;
    fill(title, `${day(row.created)}, ${clock(row.created)}`);
    const here = row.here.length ? `here: ${row.here.join(", ")}` : "nobody is here";
    const words = [row.closed && "closed", row.current && "phones join here", here, count(row.count, "event")];
    fill(state, words.filter(Boolean).join(" · "));
    open.hidden = row.current;
    open.setAttribute("aria-label", `Bring phones to the session of ${title.textContent}`);
  };
  update(row);
  return { element, update, close: () => undefined };
}
