/** Agent files on their way in: dropped on the page or chosen, then imported one by one. */

import { Problem, ask, post } from "./api.js";
import { desk } from "./desk.js";
import { h, icon } from "./dom.js";
import { say } from "./say.js";
import { toast } from "./toast.js";
import { troubles } from "./troubles.js";

/** Told to this as `change` whenever the agents may have changed. */
export const agentsChanged = new EventTarget();

/** Imports files; each success is told, each failure stays on the page. `tryIt(words)` starts a try. */
export async function importFiles(files, tryIt) {
  if (!desk.operator) {
    troubles.add({
      error: "Adding agents needs the operator's link.",
      todo: `\`${desk.command}\``,
      file: "",
    });
    return;
  }
  for (const file of files) {
    try {
      if (!file.name.endsWith(".py")) {
        throw new Problem({
          error: `${file.name} isn't an agent: agents are files that end in .py.`,
          code: "not_agent",
          file: file.name,
        });
      }
      const form = new FormData();
      form.append("file", file, file.name);
      const answer = await ask("/agents/import", { method: "POST", form });
      if (answer.status === "quarantined")
        troubles.add({
          error: answer.message,
          todo: "Read it, then approve it or mend it.",
          file: answer.file,
        });
      else imported(file, answer, tryIt);
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      found.file ??= file.name;
      troubles.add(found);
    }
  }
  agentsChanged.dispatchEvent(new Event("change"));
}

/** Undoes what a token stands for; a failure stays on the page. */
export async function undo(token, file) {
  try {
    await post("/agents/undo", { undo: token });
    say("Undone.");
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
    found.file ??= file;
    troubles.add(found);
  }
  agentsChanged.dispatchEvent(new Event("change"));
}

/** Accepts files dropped anywhere on the page while `wanted()`; elsewhere a drop does nothing. */
export function acceptDrops({ wanted, tryIt }) {
  const veil = h("div", { class: "veil", hidden: true }, h("p", {}, icon("file"), "Drop to add the agent"));
  document.body.append(veil);
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  const over = (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    const here = wanted();
    event.dataTransfer.dropEffect = here ? "copy" : "none";
    veil.hidden = !here;
  };
  addEventListener("dragenter", over);
  addEventListener("dragover", over);
  addEventListener("dragleave", (event) => event.relatedTarget === null && (veil.hidden = true));
  addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    veil.hidden = true;
    if (wanted()) importFiles([...event.dataTransfer.files], tryIt);
  });
}

/** A button that does what a drop does. */
export function chooseFile(label, tryIt) {
  const field = h("input", { type: "file", accept: ".py", multiple: true, hidden: true });
  field.addEventListener("change", async () => {
    await importFiles([...field.files], tryIt);
    field.value = "";
  });
  return h(
    "span",
    {},
    field,
    h("button", { type: "button", class: "secondary", onclick: () => field.click() }, icon("file"), label),
  );
}

function imported(file, answer, tryIt) {
  troubles.clear(answer.file ?? file.name);
  const actions = [];
  if (answer.try) actions.push({ label: "Try", run: () => tryIt(answer.try) });
  if (answer.undo) actions.push({ label: "Undo", run: () => undo(answer.undo, file.name) });
  toast(readiness(answer), { actions });
}

/** "Weather is ready. Try: will it rain?" */
function readiness({ agents = [], message = "", try: example }) {
  if (!agents.length) return message;
  const ready = `${agents.join(" and ")} ${agents.length > 1 ? "are" : "is"} ready.`;
  return example ? `${ready} Try: ${example}` : ready;
}
