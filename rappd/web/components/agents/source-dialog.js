/** The source of a file that does not run, and the decision where it waits for approval (`card.held`). */

import { actionButton, h, withCode } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { agentsChanged } from "./agent-import.js";
import { attemptIn } from "../ui/problem.js";
import { openDialog } from "../ui/dialog.js";
import { reachOf } from "./reach.js";
import { toast } from "../ui/toast.js";
import { failedFiles } from "./failed-files.js";

const ENV = "This file is kept, not used. Once approved, every agent here gets its variables.";
const CODE = "This file is kept, not run. Once approved it runs whenever it is asked.";

/** Fetches the source and opens the dialog; failures to fetch go into `errorPlace`, on the card. */
export function openSource(file, card, errorPlace, key = "") {
  return attemptIn(errorPlace, async () => {
    const { source, sha256 } = await operations.agents.source({ twin: key, filename: file.filename });
    openDialog({
      title: file.filename,
      wide: true,
      build: (close) => content({ ...file, sha256 }, card, source, close, key),
    });
  });
}

function content(file, card, source, close, key) {
  const errorPlace = h("div", {});
  const approve = h("button", { type: "button", class: "primary" }, "Approve");
  approve.addEventListener("click", async () => {
    approve.disabled = true;
    let answer = {};
    const done = await attemptIn(errorPlace, async () => {
      answer = await operations.agents.approve({ twin: key, filename: file.filename, sha256: file.sha256, waits: card.held || undefined });
    });
    approve.disabled = false;
    if (!done) return;
    failedFiles.clear(file.filename);
    agentsChanged.dispatchEvent(new Event("change"));
    close();
    toast(answer.message || `${file.filename} is approved.`);
  });
  return h(
    "div",
    { class: "dialog-body" },
    card.held && h("p", {}, withCode(card.env ? ENV : CODE)),
    card.reason &&
      h(
        "p",
        { class: "reason" },
        card.waits ? h("span", { class: "sign warn" }, "! ") : h("span", { class: "sign bad" }, "✗ "),
        card.line ? `Line ${card.line}: ${card.reason}` : card.reason,
      ),
    card.held && !card.env && reachOf(card),
    listing(source, card.line),
    errorPlace,
    h(
      "div",
      { class: "dialog-actions" },
      actionButton(card.held ? "Cancel" : "Close", close),
      card.held && approve,
    ),
  );
}

/** Source text with line numbers; the line that matters is marked and scrolled to. */
export function listing(source, marked) {
  const lines = source.replace(/\n$/, "").split("\n");
  const box = h("pre", { class: "listing", tabindex: 0, role: "region", "aria-label": "Source text" });
  box.append(
    ...lines.map((line, index) =>
      h("code", { class: index + 1 === marked ? "row marked" : "row" }, `${line}\n`),
    ),
  );
  requestAnimationFrame(() => {
    const row = box.querySelector(".marked");
    if (row) box.scrollTop = row.offsetTop - box.offsetTop - box.clientHeight / 2;
  });
  return box;
}
