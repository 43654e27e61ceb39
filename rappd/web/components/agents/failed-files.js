/** Files that failed to load: shown on Chat and Agents until fixed or dismissed. */

import { fill, h } from "../../lib/dom.js";
import { problemView } from "../ui/problem.js";

const FILE = /[\w.-]+\.py\b/;

class FailedFiles extends EventTarget {
  #byFile = new Map();

  /** Adds a failure; it replaces an older one of the same file. */
  add(problem) {
    const text = problem.message ?? problem.error ?? "";
    const file = problem.file ?? FILE.exec(text)?.[0] ?? text;
    this.#byFile.delete(file);
    this.#byFile.set(file, problem);
    this.dispatchEvent(new Event("change"));
  }

  /** Removes the failure of a file, if any. */
  clear(file) {
    if (this.#byFile.delete(file)) this.dispatchEvent(new Event("change"));
  }

  /** Removes the failure of the file that these agents came from. */
  mended(message, files) {
    for (const file of files) {
      if (file.agents.some((name) => message.startsWith(`${name} `))) this.clear(file.filename);
    }
  }

  get list() {
    return [...this.#byFile.entries()];
  }
}

export const failedFiles = new FailedFiles();

/** Runs work in the background; its problem is shown on the page. */
export async function orShowFailure(work) {
  try {
    await work();
  } catch (found) {
    if (found.code === undefined) throw found;
    failedFiles.add(found);
  }
}

/** An element that shows the present failures; `close()` when done. */
export function failedFilesView() {
  const place = h("div", { class: "failed-files", role: "alert" });
  const draw = () =>
    fill(
      place,
      failedFiles.list.map(([file, problem]) =>
        problemView(problem, {
          quiet: true,
          dismiss: () => failedFiles.clear(file),
          action: problem.edit && h("a", { href: problem.edit, "aria-label": `Edit ${file}` }, "Edit it"),
        }),
      ),
    );
  draw();
  failedFiles.addEventListener("change", draw);
  return { element: place, close: () => failedFiles.removeEventListener("change", draw) };
}
