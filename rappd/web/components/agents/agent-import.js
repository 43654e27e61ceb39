/** Imports agent files that were dropped or chosen, one by one. */

import { Problem } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, h, icon } from "../../lib/dom.js";
import { announce } from "../../lib/live-region.js";
import { toast } from "../ui/toast.js";
import * as operations from "../../lib/operations.js";
import { editPath } from "../../lib/router.js";
import { failedFiles } from "./failed-files.js";

/** Told to this as `change` whenever the agents may have changed. */
export const agentsChanged = new EventTarget();

/**
 * Imports files for the brainstem, or for the twin `key`; each success is told, each failure stays on the
 * page. `tryIt(words)` starts a try.
 */
export async function importFiles(files, tryIt, key = "") {
  if (!daemon.operator) {
    failedFiles.add({
      error: "Adding agents needs the operator's link.",
      todo: `\`${daemon.command}\``,
      file: "",
    });
    return;
  }
  for (const file of files) {
    try {
      if (!file.name.endsWith(".py")) {
        throw new Problem({
          error: `${file.name} isn't an agent: agents are files that end in .py.`,
          do: /egg/i.test(file.name) ? "Eggs are opened at Twins." : "",
          code: "not_agent",
          file: file.name,
        });
      }
      const form = new FormData();
      form.append("keep", "1"); // a faulty file is kept, and shown with its line
      form.append("file", file, file.name);
      const answer = await operations.agents.takeIn({ twin: key }, form);
      if (answer.status === "quarantined")
        failedFiles.add({
          error: answer.message,
          todo: "It is kept, and does not run.",
          file: answer.file,
          edit: editPath(answer.file, key),
        });
      else imported(file, answer, tryIt, key);
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      found.file ??= file.name;
      failedFiles.add(found);
    }
  }
  agentsChanged.dispatchEvent(new Event("change"));
}

/** Undoes what a token stands for; a failure stays on the page. */
export async function undo(token, file, key = "") {
  try {
    await operations.agents.undo({ twin: key, undo: token });
    announce("Undone.");
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
    found.file ??= file;
    failedFiles.add(found);
  }
  agentsChanged.dispatchEvent(new Event("change"));
}

/** A button that does what a drop does. */
export function chooseFile(label, tryIt, key = "") {
  const field = h("input", { type: "file", accept: ".py", multiple: true, hidden: true });
  field.addEventListener("change", async () => {
    await importFiles([...field.files], tryIt, key);
    field.value = "";
  });
  return h("span", {}, field, actionButton([icon("file"), label], () => field.click()));
}

function imported(file, answer, tryIt, key) {
  failedFiles.clear(answer.file ?? file.name);
  const actions = [];
  if (answer.try) actions.push({ label: "Try", run: () => tryIt(answer.try, key) });
  if (answer.undo) actions.push({ label: "Undo", run: () => undo(answer.undo, file.name, key) });
  toast(readiness(answer), { actions });
}

/** "Weather is ready. Try: will it rain?" */
function readiness({ agents = [], message = "", try: example }) {
  if (!agents.length) return message;
  const ready = `${agents.join(" and ")} ${agents.length > 1 ? "are" : "is"} ready.`;
  return example ? `${ready} Try: ${example}` : ready;
}
