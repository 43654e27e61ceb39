/** Dialog that selects the chat target. */

import { daemon } from "../../lib/daemon-state.js";
import { actionButton, h } from "../../lib/dom.js";
import { nameOf, chatTarget } from "./chat-target.js";
import { go } from "../../lib/router.js";
import { openDialog } from "../ui/dialog.js";
import { twins } from "../twins/twins-state.js";

/** Opens the dialog; a choice leads to Chat. */
export function openChatTargets() {
  const others = twins.rows.map(({ key }) => key);
  const known = new Set(["", ...others, chatTarget.key]);
  openDialog({
    title: "Chat with",
    build: (close) =>
      h(
        "ul",
        { class: "dialog-body chat-targets" },
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
  const about = key ? (row?.kind ?? "") : `this machine, ${daemon.thinking || "the brainstem"}`;
  return actionButton(
    [h("span", {}, row ? twins.toldApart(key) : nameOf(key)), h("span", { class: "soft" }, about)],
    choose,
    "secondary",
    { "aria-current": key === chatTarget.key ? "true" : null },
  );
}
