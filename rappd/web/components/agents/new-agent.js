/** A new agent: a name and a sentence become a file that runs, opened in the editor. */

import { actionButton, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { toast } from "../ui/toast.js";
import { field, formDialog } from "../ui/form-dialog.js";
import { agentsChanged } from "./agent-import.js";

/** The button, for the brainstem or the twin `key`. */
export function newAgentButton(key = "") {
  return actionButton("New agent", () => openNewAgent(key));
}

/** Asks for the name and the sentence; the file is made for the brainstem or the twin `key`. */
export function openNewAgent(key) {
  const name = field("Name", { required: true, maxlength: 60, help: "One or two words, like Rain gauge." });
  const description = field("What it is for", {
    tag: "textarea",
    rows: 2,
    help: "One sentence: what it does, and when to use it. You can leave it out.",
  });
  const typed = h("input", { type: "checkbox", role: "switch" });
  const help = h("span", { class: "soft help" }, "A listener: it takes exactly the fields that you list, also in XML.");
  let made = null;
  formDialog({
    title: "New agent",
    verb: "Create",
    before: h(
      "p",
      {},
      "An agent is one file with one skill. This makes one that already runs; you then say what it does.",
    ),
    fields: [name, description],
    after: h("label", { class: "switch" }, h("span", {}, "With typed fields", help), typed),
    run: async () => {
      made = await operations.agents.new({
        twin: key,
        name: name.input.value,
        description: description.input.value,
        listener: typed.checked,
      });
      agentsChanged.dispatchEvent(new Event("change"));
      toast(made.message);
      go("agents", "edit", made.file, ...(key ? [key] : []));
    },
  });
}
