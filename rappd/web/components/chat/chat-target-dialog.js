/** The list behind the ▾: whom to talk to. */

import { desk } from "../../lib/daemon-state.js";
import { h } from "../../lib/dom.js";
import { nameOf, partner } from "./chat-target.js";
import { go } from "../../lib/router.js";
import { openSheet } from "../ui/dialog.js";
import { twins } from "../twins/twins.js";

/** Opens it; choosing leads to Chat. */
export function openPartners() {
  const others = twins.rows.map(({ key }) => key);
  const known = new Set(["", ...others, partner.key]);
  openSheet({
    title: "Chat with",
    build: (close) =>
      h(
        "ul",
        { class: "sheet-body partners" },
        [...known].map((key) => h("li", {}, choice(key, close))),
      ),
  });
}

function choice(key, close) {
  const choose = () => {
    close();
    go("chat", ...(key ? [key] : []));
  };
  const row = twins.row(key);
  return h(
    "button",
    {
      type: "button",
      class: "secondary",
      onclick: choose,
      "aria-current": key === partner.key ? "true" : null,
    },
    h("span", {}, row ? twins.toldApart(key) : nameOf(key)),
    h(
      "span",
      { class: "soft" },
      key ? (row?.kind ?? "") : `this machine, ${desk.thinking || "the brainstem"}`,
    ),
  );
}
