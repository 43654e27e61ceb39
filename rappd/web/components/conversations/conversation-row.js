/** One conversation in the list: title, when, with whom, how it ended; rename and remove. */

import { conversations, keyOf } from "./conversations-state.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";
import { field, formDialog } from "../ui/form-dialog.js";
import { timeOrDay } from "../../lib/format.js";
import { menuButton } from "../ui/menu.js";
import { nameOf } from "../chat/chat-target.js";
import { toast } from "../ui/toast.js";

const LONGEST = 120;
const ENDS = { stopped: "stopped", failed: "not answered", open: "no answer yet" };

/** The name of whom a conversation is with. */
export const withWhom = (row) => nameOf(keyOf(row)) || daemon.name;

/** A row that draws itself again by `update(row)`. `gone(row, open)` is called after it was removed. */
export function conversationRow(row, { isOpen, gone }) {
  const title = h("span", { class: "conversation-title" });
  const about = h("span", { class: "soft" });
  const link = h("a", { class: "conversation-link" }, title, about);
  let now = row;
  const menu = menuButton("⋯", "", () => [
    { label: "Rename", run: () => rename(now) },
    { label: "Remove from the list", run: () => remove(now, isOpen(now), gone) },
  ]);
  const element = h("li", { class: "conversation" }, link, menu);
  const update = (next) => {
    now = next;
    link.href = `#/chat/conversation/${next.id}`;
    if (isOpen(next)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    fill(title, next.title);
    fill(about, [timeOrDay(next.updated), withWhom(next), ENDS[next.state]].filter(Boolean).join(", "));
    menu.firstElementChild.setAttribute("aria-label", `More for ${next.title}`);
  };
  update(row);
  return { element, update, close: () => undefined };
}

function rename(row) {
  const title = field("Title", {
    value: row.title,
    maxlength: LONGEST,
    help: "Leave it empty to have the first words again.",
  });
  formDialog({
    title: "Rename the conversation",
    verb: "Rename",
    fields: [title],
    run: () => conversations.rename(row.id, title.input.value),
  });
}

async function remove(row, open, gone) {
  try {
    await conversations.remove(row.id);
  } catch (found) {
    if (found.code === undefined) throw found;
    toast(`"${row.title}" could not be removed. ${found.message}`);
    return;
  }
  gone(row, open);
  const back = () => conversations.restore(row.id).catch((found) => toast(found.message));
  toast("Removed from the list. The log still has what was said.", {
    actions: [{ label: "Undo", run: back }],
    focus: true,
  });
}
