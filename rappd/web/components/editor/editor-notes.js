/** Notes above the editor's text: a fault and its line, a file that cannot be changed, text that came back, two texts of one file. */

import { actionButton, h } from "../../lib/dom.js";
import { clock } from "../../lib/format.js";
import { lineDiff } from "../../lib/line-diff.js";
import { sides } from "../ui/diff-view.js";
import { attemptIn } from "../ui/problem.js";

/** The reason for which the text does not run; `goTo(line)` leads to its line, if one is known. */
export const faultNote = ({ message, line, before, goTo }) => [
  h(
    "p",
    { class: "reason", role: "alert" },
    h("span", { class: "sign bad" }, "✗ "),
    before,
    line > 0 && !lineIn(message) ? `Line ${line}: ${message}` : message,
  ),
  line > 0 &&
    actionButton(`Go to line ${line}`, () => goTo(line), "quiet"),
];

/** The way to keep a text that does not run. */
export const saveAnywayNote = (save) => [
  h(
    "p",
    { class: "soft" },
    "Your text stays here. Saved anyway, it is kept and does not run; the version before works on.",
  ),
  actionButton("Save anyway", save),
];

/** The reason for which a file is read only; `copy()` makes one that is not, if `why` offers it. */
export function readOnlyNote(why, copy) {
  const errorPlace = h("div", {});
  return [
    h("p", {}, `This file cannot be changed here. ${why}`),
    why.includes("copy") &&
      actionButton("Make a copy", () => attemptIn(errorPlace, copy)),
    errorPlace,
  ];
}

/** The text is a draft of the moment `at`. */
export const draftNote = (at, discard) =>
  h(
    "p",
    {},
    `This is your text of ${clock(at)}, not saved yet. `,
    actionButton("Throw it away", discard, "quiet"),
  );

/** The line that a message of the daemon names, or 0. */
export const lineIn = (message) => Number(/ line (\d+):/.exec(message)?.[1] ?? 0);

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
      actionButton(gone ? "Save it again" : "Keep my text", keepMine),
      actionButton(gone ? "Throw my text away" : "Take the text on the disk", takeTheirs),
    ),
  );
}
