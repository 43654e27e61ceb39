/** Labels of a twin on its card and its page. */

import { ago, count } from "../../lib/format.js";
import { h } from "../../lib/dom.js";

/** Kinds that "New twin" offers; `rappd twins new --kind` knows the rarer ones, too. */
export const KINDS = ["personal", "project", "place", "buddy"];

/** A twin's state in words. */
export const stateWord = (state) => ({ asleep: "stopped", awake: "running" })[state] ?? state;

/** "● running on port 7081", "○ stopped" */
export function state(row) {
  const awake = row.state === "awake";
  return [
    h("span", { class: awake ? "sign good" : "sign soft", "aria-hidden": "true" }, awake ? "● " : "○ "),
    awake ? `running on port ${row.port}` : stateWord(row.state),
  ];
}

/** "personal · 131 memories · talked 2 min ago" */
export function facts(row) {
  const memories =
    row.memories === null ? "memories cannot be read" : count(row.memories, "memory", "memories");
  const talked = row.last_talk === null ? "never talked" : `talked ${ago(row.last_talk)}`;
  const kind = row.buddy ? `buddy, ${row.buddy.stage}` : row.kind;
  return [kind, memories, talked].filter(Boolean).join(" · ");
}

/** Address of a twin's page. */
export const pageOf = (key) => `#/twins/twin/${encodeURIComponent(key)}`;
export const chatLink = (key) => `#/chat/${encodeURIComponent(key)}`;
