/** "Read and approve": the source of a quarantined file, then the decision. */

import { get, post } from "../../lib/api.js";
import { h, words } from "../../lib/dom.js";
import { agentsChanged } from "./agent-import.js";
import { inline } from "../ui/problem.js";
import { openSheet } from "../ui/dialog.js";
import { toast } from "../ui/toast.js";
import { troubles } from "./failed-files.js";
import { routesOf } from "../twins/twins.js";

/** Fetches the source and opens the sheet; failures to fetch go into `trouble`, on the card. */
export function openSource(file, card, trouble, key = "") {
  return inline(trouble, async () => {
    const { source } = await get(`${routesOf(key)}/agents/source/${encodeURIComponent(file.filename)}`);
    openSheet({
      title: file.filename,
      wide: true,
      build: (close) => content(file, card, source, close, key),
    });
  });
}

function content(file, card, source, close, key) {
  const trouble = h("div", {});
  const approve = h("button", { type: "button", class: "primary" }, "Approve");
  approve.addEventListener("click", async () => {
    approve.disabled = true;
    let answer = {};
    const done = await inline(trouble, async () => {
      answer = await post(`${routesOf(key)}/agents/approve`, { filename: file.filename });
    });
    approve.disabled = false;
    if (!done) return;
    troubles.clear(file.filename);
    agentsChanged.dispatchEvent(new Event("change"));
    close();
    toast(answer.message || `${file.filename} is approved.`);
  });
  return h(
    "div",
    { class: "sheet-body" },
    h(
      "p",
      {},
      words(
        card.env
          ? "This file is kept, not used. Once approved, every agent here gets its variables."
          : "This file is kept, not run. Once approved it runs whenever it is asked.",
      ),
    ),
    card.reason &&
      h(
        "p",
        { class: "reason" },
        h("span", { class: "sign warn" }, "! "),
        card.line ? `Line ${card.line}: ${card.reason}` : card.reason,
      ),
    listing(source, card.line),
    trouble,
    h(
      "div",
      { class: "sheet-actions" },
      h("button", { type: "button", class: "secondary", onclick: close }, "Not now"),
      approve,
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
