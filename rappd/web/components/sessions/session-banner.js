/** A line above the conversation that leads to the open session. */

import { fill, h, icon } from "../../lib/dom.js";
import { sessions, titleOf } from "./sessions-state.js";

/** `element` is empty while no session is open; `close()` when it leaves the page. */
export function sessionBanner() {
  const element = h("div", { class: "chat-head" });
  const draw = () => {
    const row = sessions.current;
    fill(element, row && line(row));
  };
  sessions.addEventListener("change", draw);
  draw();
  return { element, close: () => sessions.removeEventListener("change", draw) };
}

function line(row) {
  return h(
    "div",
    { class: "chat-column" },
    h("p", {}, h("a", { href: `#/chat/session/${row.id}` }, `${titleOf(row.here)} — open`)),
    h("a", { class: "button quiet small", href: `#/chat/session/${row.id}` }, "Show", icon("chevron")),
  );
}
