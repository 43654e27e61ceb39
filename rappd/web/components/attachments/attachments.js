/** Files that go with a sentence: read, refused by name where the model cannot take them, listed, and put into its text. */

import { daemon } from "../../lib/daemon-state.js";
import { fill, h, icon } from "../../lib/dom.js";
import { bytes } from "../../lib/format.js";
import { announce } from "../../lib/live-region.js";

const MOST_BYTES = 100_000;
const MOST_TOGETHER = 200_000;
const PICTURES = /\.(png|jpe?g|gif|webp|avif|heic|bmp|tiff?|svg)$/i;
const CONTROL = /[\0-\x08\x0e-\x1f]/;

/** The list of a message box. `add(files)` takes files in, `with(text)` gives the sentence with them. */
export function attachmentList({ changed }) {
  const list = h("ul", { class: "attachments", "aria-label": "Attached files" });
  const refusals = h("div", { class: "attachments-refused", role: "alert" });
  let files = []; // {name, text, size}

  const draw = () => {
    list.hidden = files.length === 0;
    fill(list, files.map(chip));
    changed();
  };
  const chip = (file) =>
    h(
      "li",
      {},
      icon("file"),
      h("span", { class: "attachment-name" }, file.name),
      h("span", { class: "soft" }, bytes(file.size)),
      h(
        "button",
        {
          type: "button",
          class: "quiet only-icon",
          "aria-label": `Remove ${file.name}`,
          onclick: () => {
            files = files.filter((other) => other !== file);
            fill(refusals);
            draw();
          },
        },
        icon("close"),
      ),
    );
  draw();
  return {
    element: h("div", {}, refusals, list),
    get count() {
      return files.length;
    },
    async add(some) {
      const refused = [];
      for (const file of some) {
        const together = files.reduce((sum, { size }) => sum + size, 0);
        const problem = refusal(file, together) || (await readInto(files, file));
        if (problem) refused.push(`${file.name} ${problem}`);
      }
      fill(
        refusals,
        refused.map((text) => h("p", {}, h("span", { class: "sign bad" }, "✗ "), text)),
      );
      if (!refused.length && some.length) announce(`Attached: ${[...some].map(({ name }) => name).join(", ")}.`);
      draw();
    },
    with(text) {
      return [text || "Look at what is attached.", ...files.map(asText)].join("\n\n");
    },
    clear() {
      files = [];
      fill(refusals);
      draw();
    },
  };
}

/** The reason why a file cannot go along, as the end of a sentence that begins with its name; "" when it can. */
function refusal({ name, type, size }, together) {
  if (daemon.health?.provider?.state === "no model")
    return "was not attached: no model is set up, and without one nobody can read it.";
  if (type.startsWith("image/") || PICTURES.test(name))
    return "was not attached: pictures cannot be sent to a model here yet. Describe it, or paste its text.";
  if (size === 0) return "was not attached: it is empty.";
  if (size > MOST_BYTES) return `was not attached: it is ${bytes(size)} large, and ${bytes(MOST_BYTES)} is the most.`;
  if (together + size > MOST_TOGETHER)
    return `was not attached: all files together may be ${bytes(MOST_TOGETHER)} large.`;
  return "";
}

async function readInto(files, file) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch (found) {
    if (found instanceof DOMException) return "could not be read. Is it a folder, or was it moved?";
    if (!(found instanceof TypeError)) throw found;
    text = null;
  }
  if (text === null || CONTROL.test(text)) return "was not attached: it is no text, and a model reads text alone.";
  files.push({ name: file.name, text, size: file.size });
  return "";
}

/** As `turn-view.js` finds it again. The fence is longer than any within. */
function asText({ name, text }) {
  const runs = [...text.matchAll(/~+/g)].map(([run]) => run.length);
  const fence = "~".repeat(Math.max(4, ...runs.map((length) => length + 1)));
  return `Attached file ${name.replaceAll(/\s+/g, " ")}:\n\n${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}
