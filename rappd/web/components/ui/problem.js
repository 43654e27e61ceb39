/** Shows a problem where it arose: what happened, then what to do. Never a toast. */

import { actionButton, fill, h, icon, withCode } from "../../lib/dom.js";

/** Takes a `Problem` or `{error, todo}`; gives a paragraph pair with `role="alert"` unless `quiet`. */
export function problemView(problem, { quiet = false, dismiss = null, action = null } = {}) {
  const text = problem.message ?? problem.error;
  return h(
    "div",
    { class: "problem", role: quiet ? null : "alert" },
    h("p", {}, h("span", { class: "sign bad" }, "✗ "), withCode(placed(problem, text))),
    problem.todo &&
      h(
        "p",
        { class: "todo" },
        h("span", { "aria-hidden": "true" }, "→ "),
        withCode(problem.todo),
        action && " ",
        action,
      ),
    dismiss &&
      actionButton(icon("close"), dismiss, "quiet only-icon", { "aria-label": "Dismiss" }),
  );
}

/** Runs `work`; what goes wrong appears in `place`, which is emptied first. Resolves to whether it worked. */
export async function attemptIn(place, work) {
  fill(place);
  try {
    await work();
    return true;
  } catch (found) {
    if (found.code === undefined) throw found;
    fill(place, problemView(found));
    return false;
  }
}

/** Puts file, line and reason in front when the daemon gave them apart and the sentence lacks them. */
function placed(problem, text) {
  if (!problem.reason || text.includes(problem.reason)) return text;
  const where = problem.line
    ? `${problem.file ?? "The file"} line ${problem.line}`
    : (problem.file ?? "The file");
  return `${where}: ${problem.reason}`;
}
