/** A dialog that corrects one memory; where an agent changed it meanwhile, both texts are shown. */

import { fill, h } from "../../lib/dom.js";
import { field, formDialog } from "../ui/form-dialog.js";

/** Opens one for a new memory; `save(fields)` stores it, its problem is told in the dialog. */
export function openNewMemory(save) {
  const { message, theme, tags } = inputs({ message: "", theme: "fact", tags: [] });
  formDialog({
    title: "Add a memory",
    verb: "Add",
    fields: [message, theme, tags],
    run: () =>
      save({
        message: message.input.value,
        ...(theme.input.value.trim() && { theme: theme.input.value }),
        tags: listed(tags.input.value),
      }),
  });
}

const listed = (text) =>
  text
    .split(",")
    .map((tag) => tag.trim())
    .filter(Boolean);

function inputs(memory) {
  return {
    message: field("Memory", { tag: "textarea", rows: 4, value: memory.message, required: true }),
    theme: field("Kind", { value: memory.theme, help: "For example fact, preference, insight or task." }),
    tags: field("Words to file it under", { value: memory.tags.join(", "), help: "With commas between them." }),
  };
}

/** Opens it. `save(fields, version)` stores what was written; its problem is told in the dialog. */
export function openMemory(memory, save) {
  let version = memory.version;
  const { message, theme, tags } = inputs(memory);
  const meanwhile = h("div", {});
  formDialog({
    title: "Edit memory",
    verb: "Save",
    fields: [message, theme, tags],
    after: meanwhile,
    run: async () => {
      try {
        await save(changes(), version);
      } catch (found) {
        if (found.code !== "memory_changed") throw found;
        version = found.rest.memory.version;
        fill(
          meanwhile,
          h("p", {}, "It now reads:"),
          h("blockquote", { class: "meanwhile" }, found.rest.memory.message),
          h("p", { class: "soft" }, "Save again to put your text in its place, or Cancel to leave it."),
        );
        throw found;
      }
    },
  });

  message.input.setSelectionRange(memory.message.length, memory.message.length);

  /** Only what was changed is sent: an empty kind stays as it is. */
  function changes() {
    const found = { message: message.input.value };
    if (theme.input.value.trim() && theme.input.value !== memory.theme) found.theme = theme.input.value;
    const words = listed(tags.input.value);
    if (words.join() !== memory.tags.join()) found.tags = words;
    return found;
  }
}
