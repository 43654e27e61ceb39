/** One agent: its name, one sentence, where it came from, and what can be done with it. */

import { download } from "../../lib/api.js";
import { openHere } from "../cartridges/cartridge-opening.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, h } from "../../lib/dom.js";
import { firstSentence } from "../../lib/format.js";
import { agentsChanged, undo } from "./agent-import.js";
import * as operations from "../../lib/operations.js";
import { editPath } from "../../lib/router.js";
import { attemptIn } from "../ui/problem.js";
import { go } from "../../lib/router.js";
import { reachOf } from "./reach.js";
import { openSource } from "./source-dialog.js";
import { toast } from "../ui/toast.js";
import { routesOf } from "../twins/twins-state.js";

const UNDO_SECONDS = 10;
const ORIGINS = { yours: "yours", shipped: "built in" };

/** The card of `card` from `file`, of the brainstem or the twin `key`. `tryIt(words, key)` starts a try. */
export function agentCard(file, card, { tryIt, key = "" }) {
  const errorPlace = h("div", {});
  const state = stateOf(card);
  const kind = ["card agent", CLASSES[state]].filter(Boolean).join(" ");
  const plain = state !== "ready" || key;
  const title = h(
    "h3",
    {},
    plain
      ? card.name || file.filename
      : h("a", { href: `#/agents/${encodeURIComponent(card.name)}` }, card.name),
  );
  return h(
    "li",
    { class: kind, "data-file": file.filename },
    h(
      "div",
      { class: "card-words" },
      title,
      sentence(file, card),
      h("p", { class: "soft" }, origin(file, card)),
      !card.cartridge && state !== "faulty" && reachOf(card),
      errorPlace,
    ),
    h("div", { class: "card-actions" }, ACTIONS[state](file, card, errorPlace, key, tryIt)),
  );
}

/** The state of an agent file: `cartridge`, `waiting` (for approval), `faulty`, `shadowed`, `unlisted` or `ready`. */
export function stateOf(card) {
  if (card.cartridge) return "cartridge";
  if (card.quarantined) return card.waits ? "waiting" : "faulty";
  if (card.shadowed_by) return "shadowed";
  return card.offered === false ? "unlisted" : "ready";
}

/** "built in · time_agent.py" */
export function origin(file, card) {
  const from = ORIGINS[card.origin] ?? card.origin?.replace(/^source /, "from ");
  const others = file.agents.filter((name) => name !== card.name);
  const company = others.length ? `also holds ${others.join(", ")}` : "";
  const shared = card.one_worker ? "serves everybody in one process" : "";
  const keys = card.ssh_keys ? "can use your SSH keys" : "";
  return [from, file.filename, company, shared, keys].filter(Boolean).join(" · ");
}

/** Removes the agent's file; for ten seconds that can be undone. */
async function removeAgent(file, { byKeyboard = false, key = "" } = {}) {
  const answer = await operations.agents.remove({ twin: key, filename: file.filename });
  const names = file.agents.length ? file.agents.join(" and ") : file.filename;
  agentsChanged.dispatchEvent(new Event("change"));
  toast(`${names} removed.`, {
    actions: answer.undo ? [{ label: "Undo", run: () => undo(answer.undo, file.filename, key) }] : [],
    seconds: UNDO_SECONDS,
    focus: byKeyboard,
  });
}

function sentence(file, card) {
  if (card.cartridge) return h("p", {}, "A program that runs by itself; it gives no agent.");
  if (card.quarantined && card.waits)
    return h(
      "p",
      { class: "reason" },
      h("span", { class: "sign warn" }, "! "),
      `Waits for your approval: kept, not run. ${card.reason}`,
    );
  if (card.quarantined) {
    const where = card.line ? `${file.filename} line ${card.line}: ` : "";
    return h(
      "p",
      { class: "reason" },
      h("span", { class: "sign bad" }, "✗ "),
      `Not running. ${where}${card.reason}`,
    );
  }
  if (card.reason) {
    const where = card.line ? `${file.filename} line ${card.line}: ` : "";
    return [
      h("p", {}, firstSentence(card.summary || card.description)),
      h(
        "p",
        { class: "reason" },
        h("span", { class: "sign warn" }, "! "),
        `${where}${card.reason}. The version before it works on.`,
      ),
    ];
  }
  if (card.shadowed_by)
    return h("p", { class: "reason" }, `Not used: ${card.shadowed_by} holds an agent of the same name.`);
  if (stateOf(card) === "unlisted")
    return h("p", { class: "reason" }, "Not used: it is not in organism.yaml, your list of what exists here.");
  return h("p", {}, firstSentence(card.summary || card.description));
}

function readyActions(file, card, errorPlace, key, tryIt) {
  return [
    stateOf(card) === "ready" &&
      card.try && // an agent without an example needs what is not here yet
      actionButton("Try", () => tryIt(card.try, key), "secondary", { "aria-label": `Try ${card.name}` }),
    editLink(file, card, key),
    exportButton(file, errorPlace, key),
    removeButton(file, card, errorPlace, key),
  ];
}

/** A file that waits only for code that it imports needs no approval itself: that code is listed beside it. */
function readActions(file, card, errorPlace, key) {
  return [
    daemon.operator &&
      (editLink(file, card, key) ||
        actionButton(card.held ? "Read and approve" : "Read", () => openSource(file, card, errorPlace, key))),
    exportButton(file, errorPlace, key),
    removeButton(file, card, errorPlace, key),
  ];
}

function cartridgeActions(file, card, errorPlace, key) {
  const run = async () =>
    (await attemptIn(errorPlace, () => openHere(file.filename, key))) && go("twins", "cartridges");
  return [
    daemon.operator &&
      actionButton("Open", run, "secondary", { "aria-label": `Open ${file.filename}` }),
    exportButton(file, errorPlace, key),
    removeButton(file, card, errorPlace, key),
  ];
}

const CLASSES = { waiting: "quarantined", faulty: "faulty", shadowed: "shadowed", unlisted: "shadowed" };
const ACTIONS = {
  cartridge: cartridgeActions,
  waiting: readActions,
  faulty: readActions,
  shadowed: readyActions,
  unlisted: readyActions,
  ready: readyActions,
};

/** Only the user's own files are edited, and those that wait for approval are read first. */
function editLink(file, card, key) {
  const own = (card.origin ?? "yours") === "yours" && !card.waits && !card.held;
  const marks = { class: "button quiet", href: editPath(file.filename, key) };
  return daemon.operator && own && h("a", { ...marks, "aria-label": `Edit ${file.filename}` }, "Edit");
}

function exportButton(file, errorPlace, key) {
  const path = `${routesOf(key)}/agents/export/${encodeURIComponent(file.filename)}`;
  const run = () => attemptIn(errorPlace, () => download(path, file.filename));
  return (
    daemon.operator &&
    actionButton("Export", run, "quiet", { "aria-label": `Export ${file.filename}` })
  );
}

/** Only the user's own files can be removed: sources are switched off in Settings. */
function removeButton(file, card, errorPlace, key) {
  const run = (event) =>
    attemptIn(errorPlace, () => removeAgent(file, { byKeyboard: event.detail === 0, key }));
  return (
    daemon.operator &&
    (card.origin ?? "yours") === "yours" &&
    actionButton("Remove", run, "quiet", { "aria-label": `Remove ${file.filename}` })
  );
}
