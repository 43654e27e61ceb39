/** Files that failed to become agents: shown on Chat and Agents until mended or dismissed. */

import { fill, h } from "../../lib/dom.js";
import { problemView } from "../ui/problem.js";

const FILE = /[\w.-]+\.py\b/;

class FailedFiles extends EventTarget {
  #byFile = new Map();

  /** Adds one; a newer trouble with the same file replaces the older. */
  add(problem) {
    const text = problem.message ?? problem.error ?? "";
    const file = problem.file ?? FILE.exec(text)?.[0] ?? text;
    this.#byFile.delete(file);
    this.#byFile.set(file, problem);
    this.dispatchEvent(new Event("change"));
  }

  /** Forgets the trouble with a file, if there was any. */
  clear(file) {
    if (this.#byFile.delete(file)) this.dispatchEvent(new Event("change"));
  }

  /** Forgets the trouble with the file that these agents came from. */
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

/** Does what nobody waits for; what goes wrong with it stays on the page. */
export async function orShowFailure(work) {
  try {
    await work();
  } catch (found) {
    if (found.code === undefined) throw found;
    failedFiles.add(found);
  }
}

/** An element that always shows the present troubles, and what ends its doing so. */
export function failedFilesView() {
  const place = h("div", { class: "failed-files", role: "alert" });
  const draw = () =>
    fill(
      place,
      failedFiles.list.map(([file, problem]) =>
        problemView(problem, { quiet: true, dismiss: () => failedFiles.clear(file) }),
      ),
    );
  draw();
  failedFiles.addEventListener("change", draw);
  return { element: place, close: () => failedFiles.removeEventListener("change", draw) };
}
