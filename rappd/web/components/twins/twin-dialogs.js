/** Dialogs that create, rename and fork a twin. */

import { formDialog, field } from "../ui/form-dialog.js";
import { h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";
import { KINDS } from "./twin-words.js";
import { twins } from "./twins-state.js";

/** "New twin". */
export function openNewTwin() {
  const name = field("Name", { maxlength: 120, required: true });
  const kind = field("Kind", { tag: "select", options: KINDS, value: "personal" });
  const soul = field("Soul", {
    tag: "textarea",
    rows: 5,
    help: "The text that shapes what it does. Left empty, it begins with the soul of its kind.",
  });
  formDialog({
    title: "New twin",
    verb: "Create",
    fields: [name, kind, soul],
    run: async () =>
      born(await operations.twins.new({ name: name.input.value, kind: kind.input.value, soul: soul.input.value })),
  });
}

/** Another name; its identity stays. */
export function openRename(row) {
  const name = field("Name", { value: row.name, maxlength: 120, required: true });
  formDialog({
    title: `Rename ${row.name}`,
    verb: "Rename",
    fields: [name],
    after: h("p", { class: "soft" }, "Its identity, its folder and its address stay."),
    run: async () => {
      const { message } = await rename(row.key, name.input.value);
      toast(message, {
        actions: [{ label: "Undo", run: () => orShowFailure(() => rename(row.key, row.name)) }],
      });
    },
  });
}

/** A new twin that begins as a copy. */
export function openFork(row) {
  const name = field("Name", { value: `${row.name} (fork)`, maxlength: 120, required: true });
  formDialog({
    title: `Fork ${row.name}`,
    verb: "Fork",
    fields: [name],
    before: h(
      "p",
      {},
      `The fork begins with ${row.name}'s soul, agents and memories, and goes its own way from here.`,
    ),
    run: async () => born(await operations.twins.fork({ twin: row.key, name: name.input.value })),
  });
}

async function rename(key, name) {
  const answer = await operations.twins.rename({ twin: key, name });
  twins.touch();
  return answer;
}

function born({ key, message, namesakes }) {
  twins.touch();
  const others = namesakes ? ` ${namesakes === 1 ? "Another one has" : "Others have"} the same name.` : "";
  toast(`${message}${others}`, { actions: [{ label: "Chat", run: () => go("chat", key) }] });
}
