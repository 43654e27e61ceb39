/** Runs what was chosen in the search, whose dialog is closed by then: a problem is shown in one of its own. */

import { openDialog } from "../ui/dialog.js";
import { h } from "../../lib/dom.js";
import { problemView } from "../ui/problem.js";

/** Runs `work`. */
export async function attempted(work) {
  try {
    await work();
  } catch (found) {
    if (found.code === undefined) throw found;
    openDialog({ title: "It didn't work", build: () => h("div", { class: "dialog-body" }, problemView(found)) });
  }
}
