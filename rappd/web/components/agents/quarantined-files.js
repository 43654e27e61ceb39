/** Quarantined files without an agent, and so without a card of their own: services, senses, a `.env`. */

import { Problem } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { openSource } from "./source-dialog.js";

/** The quarantined files of the brainstem, or of the twin `key`, that `files` does not list. */
export async function quarantinedFiles(files, key = "") {
  if (!daemon.operator) return [];
  try {
    const { held = [] } = await operations.agents.held({ twin: key });
    const listed = new Set(files.map(({ filename }) => `agents/${filename}`));
    return held.filter(({ path }) => !listed.has(path));
  } catch (found) {
    if (!(found instanceof Problem) || found.away) throw found;
    return []; // the rest of the page is shown all the same
  }
}

/** A list of such files, each with its reason and the way to approve it; null for none. */
export function quarantinedList(held, key = "") {
  return (
    held.length > 0 &&
    h("ul", { class: "cards" }, held.map((one) => heldCard(one, key)))
  );
}

function heldCard({ path, why, origin }, key) {
  const errorPlace = h("div", {});
  const env = path === ".env";
  const open = () => openSource({ filename: path }, { reason: why, env, held: true, waits: true }, errorPlace, key);
  return h(
    "li",
    { class: "card agent quarantined", "data-file": path },
    h(
      "div",
      { class: "card-words" },
      h("h3", {}, path),
      h(
        "p",
        { class: "reason" },
        h("span", { class: "sign warn" }, "! "),
        `Waits for your approval: kept, not ${env ? "used" : "run"}. ${why}`,
      ),
      h("p", { class: "soft" }, `came in ${origin}`),
      errorPlace,
    ),
    h("div", { class: "card-actions" }, actionButton("Read and approve", open)),
  );
}
