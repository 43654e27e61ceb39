/** One agent: its name, one sentence, where it came from, and what can be done with it. */

import { download, remove } from "./api.js";
import { desk } from "./desk.js";
import { h } from "./dom.js";
import { agentsChanged, undo } from "./incoming.js";
import { inline } from "./problem.js";
import { openSource } from "./source-sheet.js";
import { toast } from "./toast.js";

const UNDO_SECONDS = 10;
const ORIGINS = { yours: "yours", shipped: "came with rappd" };

/** The card of `card` from `file`. `tryIt(words)` starts a try. */
export function agentCard(file, card, { tryIt }) {
  const trouble = h("div", {});
  const kind = card.quarantined
    ? "card agent quarantined"
    : card.shadowed_by
      ? "card agent shadowed"
      : "card agent";
  const plain = card.quarantined || card.shadowed_by;
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
      trouble,
    ),
    h(
      "div",
      { class: "card-actions" },
      card.quarantined ? quarantinedActions(file, card, trouble) : readyActions(file, card, trouble, tryIt),
    ),
  );
}

/** "came with rappd · time_agent.py" */
export function origin(file, card) {
  const from = ORIGINS[card.origin] ?? card.origin?.replace(/^source /, "from ");
  const others = file.agents.filter((name) => name !== card.name);
  const company = others.length ? `also holds ${others.join(", ")}` : "";
  return [from, file.filename, company].filter(Boolean).join(" · ");
}

/** Removes the agent's file; for ten seconds that can be undone. */
export async function removeAgent(file, { byKeyboard = false } = {}) {
  const answer = await remove(`/agents/${encodeURIComponent(file.filename)}`);
  const names = file.agents.length ? file.agents.join(" and ") : file.filename;
  agentsChanged.dispatchEvent(new Event("change"));
  toast(`${names} removed.`, {
    actions: answer.undo ? [{ label: "Undo", run: () => undo(answer.undo, file.filename) }] : [],
    seconds: UNDO_SECONDS,
    focus: byKeyboard,
  });
}

function sentence(file, card) {
  if (card.quarantined) {
    const where = card.line ? `${file.filename} line ${card.line}: ` : "";
    return h(
      "p",
      { class: "reason" },
      h("span", { class: "sign warn" }, "! "),
      `Kept, not run. ${where}${card.reason || "Not approved yet."}`,
    );
  }
  if (card.reason) {
    const where = card.line ? `${file.filename} line ${card.line}: ` : "";
    return [
      h("p", {}, firstSentence(card.description)),
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
  return h("p", {}, firstSentence(card.description));
}

function readyActions(file, card, trouble, tryIt) {
  return [
    !card.shadowed_by &&
      h(
        "button",
        {
          type: "button",
          class: "secondary",
          onclick: () => tryIt(card.try || `${card.name}?`),
          "aria-label": `Try ${card.name}`,
        },
        "Try",
      ),
    exportButton(file, trouble),
    removeButton(file, card, trouble),
  ];
}

function quarantinedActions(file, card, trouble) {
  return [
    desk.operator &&
      h(
        "button",
        { type: "button", class: "secondary", onclick: () => openSource(file, card, trouble) },
        "Read and approve",
      ),
    exportButton(file, trouble),
    removeButton(file, card, trouble),
  ];
}

function exportButton(file, trouble) {
  const run = () =>
    inline(trouble, () => download(`/agents/export/${encodeURIComponent(file.filename)}`, file.filename));
  return (
    desk.operator &&
    h(
      "button",
      { type: "button", class: "quiet", onclick: run, "aria-label": `Export ${file.filename}` },
      "Export",
    )
  );
}

/** What came with rappd stays, and what comes from a source is switched off there. */
function removeButton(file, card, trouble) {
  const run = (event) => inline(trouble, () => removeAgent(file, { byKeyboard: event.detail === 0 }));
  return (
    desk.operator &&
    (card.origin ?? "yours") === "yours" &&
    h(
      "button",
      { type: "button", class: "quiet", onclick: run, "aria-label": `Remove ${file.filename}` },
      "Remove",
    )
  );
}

function firstSentence(text) {
  const line = String(text ?? "")
    .trim()
    .split("\n")[0];
  return /^.*?[.?!](?=\s|$)/.exec(line)?.[0] ?? line;
}
