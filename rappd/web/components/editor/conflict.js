/** Two texts of one file, where another program changed it meanwhile: both are shown, one is chosen. */

import { h } from "../../lib/dom.js";
import { lineDiff } from "../../lib/line-diff.js";
import { sides } from "../ui/diff-view.js";

/** The choice between `theirs` (the text on disk; null where the file is gone) and `mine`. */
export function conflictView({ file, theirs, mine, keepMine, takeTheirs }) {
  const gone = theirs === null;
  return h(
    "section",
    { class: "conflict", "aria-label": "Two versions" },
    h(
      "p",
      { role: "alert" },
      h("span", { class: "sign warn" }, "! "),
      gone
        ? `${file} was removed from the disk meanwhile. Your text is kept here.`
        : `${file} was changed by another program meanwhile. Both texts are here; choose one.`,
    ),
    !gone && h("p", { class: "soft" }, "Before is the text on the disk, after is yours."),
    !gone && sides(lineDiff(theirs, mine), file),
    h(
      "div",
      { class: "conflict-actions" },
      h(
        "button",
        { type: "button", class: "secondary", onclick: keepMine },
        gone ? "Save it again" : "Keep my text",
      ),
      h(
        "button",
        { type: "button", class: "secondary", onclick: takeTheirs },
        gone ? "Throw my text away" : "Take the text on the disk",
      ),
    ),
  );
}
