/** Starting a workflow: what it is about, and who plays; then to its session. */

import { h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { field, formDialog } from "../ui/form-dialog.js";
import { attemptIn } from "../ui/problem.js";

/** Asks for what `row` needs, in a dialog; `started()` once it runs. Problems before it opens appear in `trouble`. */
export function startWorkflow(row, trouble, started) {
  return attemptIn(trouble, async () => {
    const found = await operations.workflows.show({ name: row.name });
    const texts = found.files.map((one) => ({ name: one.name, ...textField(one) }));
    const asked = new Set(found.workflow.steps.map(({ participant }) => participant));
    const parts = found.workflow.participants.filter(({ name }) => asked.has(name)).map((one) => ({ name: one.name, ...playerField(one, found.players) }));
    formDialog({
      title: `Start ${found.title}`,
      verb: "Start",
      before: found.workflow.about && h("p", { class: "soft" }, found.workflow.about),
      fields: [...texts, ...parts],
      run: async () => {
        const { run } = await operations.workflows.run({ name: row.name, files: given(texts), plays: given(parts) });
        started();
        go("chat", "session", run.session);
      },
    });
  });
}

function textField({ name, file, there, optional }) {
  const without = there ? `Without it: what stands in ${file}.` : optional ? "It may be left out." : "";
  return field(titled(name), { tag: "textarea", rows: 4, help: without, required: !there && !optional });
}

function playerField({ name, role, plays }, players) {
  const own = plays || players[0];
  const all = [own, ...players.filter((one) => one !== own)];
  return { own, ...field(role ? `${name}, ${role}` : name, { tag: "select", options: all }) };
}

/** What was filled in, or chosen in place of what the workflow's file says, by names. */
function given(fields) {
  const changed = fields.filter(({ input, own }) => input.value.trim() && input.value !== own);
  return Object.fromEntries(changed.map(({ name, input }) => [name, input.value.trim()]));
}

const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1);
