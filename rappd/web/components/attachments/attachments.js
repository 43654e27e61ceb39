/** Files that go with a sentence: read, refused by name where the model cannot take them, listed; texts become part of it. */

import { Problem, get } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import { bytes } from "../../lib/format.js";
import { announce } from "../../lib/live-region.js";
import { isPicture, readPicture, urlOf } from "./picture-file.js";
import { MOST_PICTURES } from "./picture-store.js";

const MOST_BYTES = 100_000;
const MOST_TOGETHER = 200_000;
const MOST_OF_A_PICTURE = 30_000_000; // before it is made smaller: a phone has to hold all its points
const CONTROL = /[\0-\x08\x0e-\x1f]/;

/**
 * The list of a message box; `model()` is the one chosen there, "" for everybody's. `add(files)` takes files in and tells if all were taken; `with(text)` gives the sentence with
 * the texts, `pictures` what goes beside it.
 */
export function attachmentList({ model, changed }) {
  const list = h("ul", { class: "attachments", "aria-label": "Attached files" });
  const refusals = h("div", { class: "attachments-refused", role: "alert" });
  const note = h("p", { class: "soft note", hidden: true });
  let files = []; // {name, size, text} or {name, size, picture}

  const draw = () => {
    list.hidden = files.length === 0;
    note.hidden = !files.some(({ picture }) => picture);
    const where = daemon.health?.provider?.where;
    fill(note, `Pictures go to the model${where ? ` at ${where}` : ""} alone: not to agents, and to no other machine.`);
    fill(list, files.map(chip));
    changed();
  };
  const chip = (file) =>
    h(
      "li",
      {},
      file.picture ? h("img", { class: "thumbnail", src: urlOf(file.picture), alt: "" }) : icon("file"),
      h("span", { class: "attachment-name" }, file.name),
      h("span", { class: "soft" }, bytes(file.size)),
      actionButton(icon("close"), () => {
        files = files.filter((other) => other !== file);
        fill(refusals);
        draw();
      }, "quiet only-icon", { "aria-label": `Remove ${file.name}` }),
    );
  draw();
  return {
    element: h("div", {}, refusals, list, note),
    get count() {
      return files.length;
    },
    get pictures() {
      return files.flatMap(({ picture }) => picture ?? []);
    },
    async add(some) {
      const refused = [];
      for (const file of some) {
        const problem = refusal(file, files) || (await readInto(files, file, model()));
        if (problem) refused.push(`${file.name} ${problem}`);
      }
      fill(
        refusals,
        refused.map((text) => h("p", {}, h("span", { class: "sign bad" }, "✗ "), text)),
      );
      if (!refused.length && some.length) announce(`Attached: ${[...some].map(({ name }) => name).join(", ")}.`);
      draw();
      return refused.length === 0;
    },
    with(text) {
      return [text || "Look at what is attached.", ...files.filter(({ picture }) => !picture).map(asText)].join("\n\n");
    },
    clear() {
      files = [];
      fill(refusals);
      draw();
    },
  };
}

/** The reason why a file cannot go along, as the end of a sentence that begins with its name; "" when it can. */
function refusal(file, files) {
  if (daemon.health?.provider?.state === "no model")
    return "was not attached: no model is set up, and without one nobody can read it.";
  if (file.size === 0) return "was not attached: it is empty.";
  const [, heard] = /^(video|audio)\//.exec(file.type) ?? [];
  if (heard) return `was not attached: ${heard === "video" ? "it is a video" : "it is sound"}, and only pictures and texts can go along.`;
  if (isPicture(file)) {
    if (files.filter(({ picture }) => picture).length >= MOST_PICTURES)
      return `was not attached: ${MOST_PICTURES} pictures at once are the most.`;
    return file.size > MOST_OF_A_PICTURE ? `was not attached: it is ${bytes(file.size)} large, and ${bytes(MOST_OF_A_PICTURE)} is the most.` : "";
  }
  const together = files.reduce((sum, { picture, size }) => sum + (picture ? 0 : size), 0);
  if (file.size > MOST_BYTES)
    return `was not attached: it is ${bytes(file.size)} large, and ${bytes(MOST_BYTES)} is the most.`;
  if (together + file.size > MOST_TOGETHER)
    return `was not attached: all files together may be ${bytes(MOST_TOGETHER)} large.`;
  return "";
}

const readInto = (files, file, model) =>
  isPicture(file) ? readPictureInto(files, file, model) : readTextInto(files, file);

async function readPictureInto(files, file, model) {
  const blind = await blindModel(model);
  if (blind) return `was not attached: ${blind} cannot see pictures. Choose another model, or describe it.`;
  const picture = await readPicture(file);
  if (!picture) return "was not attached: this browser cannot open it. Save it as PNG or JPEG.";
  files.push({ name: file.name, size: picture.bytes, picture });
  return "";
}

/** The name of the model where it is known that it takes no pictures; else only trying tells. */
async function blindModel(asked) {
  try {
    const { model, pictures } = await get(`/models/pictures${asked && `?model=${encodeURIComponent(asked)}`}`);
    return pictures === false ? model || "the model" : "";
  } catch (found) {
    if (found instanceof Problem) return "";
    throw found;
  }
}

async function readTextInto(files, file) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch (found) {
    if (found instanceof DOMException) return "could not be read. Is it a folder, or was it moved?";
    if (!(found instanceof TypeError)) throw found;
    text = null;
  }
  if (text === null || CONTROL.test(text)) return "was not attached: it is neither a text nor a picture.";
  files.push({ name: file.name, text, size: file.size });
  return "";
}

/** As `turn-view.js` finds it again. The fence is longer than any within. */
function asText({ name, text }) {
  const runs = [...text.matchAll(/~+/g)].map(([run]) => run.length);
  const fence = "~".repeat(Math.max(4, ...runs.map((length) => length + 1)));
  return `Attached file ${name.replaceAll(/\s+/g, " ")}:\n\n${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}
