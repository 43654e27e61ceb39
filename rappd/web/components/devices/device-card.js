/** One phone in the list: whether it is connected, what it may do, and what can be done with it. */

import { fill, h } from "../../lib/dom.js";
import { openRemoveDevice, openRenameDevice, openRights, openSendTwin } from "./device-dialogs.js";
import { kindOf, nameOf, named, presence, rights, seenFrom } from "./device-words.js";

const SEND = "Send a twin to %s";

/** The card of a row of `devices.rows`. `update(row)` when there is a newer one. */
export function deviceCard(row) {
  const title = h("h3", {});
  const now = h("p", {});
  const soft = h("p", { class: "soft" });
  const buttons = [
    ["Permissions", "secondary", "Permissions of %s", openRights],
    ["Send a twin", "quiet", SEND, openSendTwin],
    ["Rename", "quiet", "Rename %s", openRenameDevice],
    ["Remove", "quiet", "Remove %s", openRemoveDevice],
  ].map(([text, kind, label, open]) => ({
    label,
    button: h("button", { type: "button", class: kind, onclick: () => open(row) }, text),
  }));
  const element = h(
    "li",
    { class: "card machine", "data-device": row.id },
    h("div", { class: "card-words" }, title, now, soft),
    h(
      "div",
      { class: "card-actions" },
      buttons.map(({ button }) => button),
    ),
  );
  const update = (newer) => {
    row = newer;
    fill(title, named(row));
    fill(now, presence(row));
    fill(soft, [kindOf(row), rights(row), seenFrom(row)].filter(Boolean).join(" · "));
    buttons.find(({ label }) => label === SEND).button.hidden = !row.eggs;
    for (const { label, button } of buttons)
      button.setAttribute("aria-label", label.replace("%s", () => nameOf(row)));
  };
  update(row);
  return { element, update, close: () => undefined };
}
