/** Likely secrets that stopped a pack, each with its file and line; the operator may allow each. */

import { count } from "../../lib/format.js";
import { actionButton, fill, h, withCode } from "../../lib/dom.js";

const SHOWN = 20;

/**
 * The list of `findings` (`{path, line, what, id}`). "Pack anyway" lets one travel; once all of them may,
 * `pack(ids)` is called. `dismiss()` puts the list away.
 */
export function secretFindings(findings, { pack, dismiss }) {
  const allowed = new Set();
  const left = h("p", { class: "soft", role: "status" });
  const told = () => {
    const number = findings.length - allowed.size;
    fill(left, number ? `Nothing is packed yet; ${count(number, "place")} to decide.` : "Packing…");
  };
  told();
  return h(
    "div",
    { class: "problem", role: "alert" },
    h(
      "p",
      {},
      h("span", { class: "sign bad" }, "✗ "),
      findings.length === 1
        ? "A likely secret would travel."
        : `${findings.length} likely secrets would travel.`,
    ),
    h(
      "p",
      { class: "todo" },
      h("span", { "aria-hidden": "true" }, "→ "),
      withCode("Move them to `.env`, and pack again."),
    ),
    h("ul", { class: "rows", role: "list" }, findings.slice(0, SHOWN).map(row)),
    findings.length > SHOWN && h("p", { class: "soft" }, `And ${findings.length - SHOWN} more.`),
    left,
    actionButton("Leave it unpacked", dismiss, "quiet"),
  );

  function row({ path, line, what, id }) {
    const where = line ? `${path} line ${line}` : path;
    const button = actionButton("Pack anyway", () => {
      allowed.add(id);
      button.disabled = true;
      fill(button, "Will travel");
      told();
      if (findings.every((one) => allowed.has(one.id))) pack([...allowed]);
    }, "quiet", { "aria-label": `Pack anyway: ${where}` });
    return h(
      "li",
      { class: "line-row" },
      h("p", {}, h("code", {}, where), ` holds a likely ${what}`),
      button,
    );
  }
}
