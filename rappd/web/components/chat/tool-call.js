/** Steps of a turn, each a closed `<details>`: tool calls, and what a model said between them. */

import { count, duration } from "../../lib/format.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";

/** The view of one call of a turn. `update(thread)` draws what changed since. */
export function callView(call) {
  const name = h("span", { class: "call-name" }, call.name);
  const given = h("span", { class: "call-given" }, inShort(call.args));
  const time = h("span", { class: "call-time" });
  const inside = h("div", { class: "call-inside" });
  const element = h("details", { class: "call" }, h("summary", {}, name, given, time), inside);
  let drawn = "";
  return {
    element,
    update(thread) {
      const now = `${call.ok} ${thread}`;
      if (now === drawn) return;
      drawn = now;
      fill(time, state(call));
      fill(inside, parts(call, thread));
      if (call.ok) element.name = "calls"; // beside the column one fits at a time
      if (call.ok === false && !element.classList.contains("failed")) {
        element.classList.add("failed");
        element.open = true;
      }
    },
  };
}

const STATES = { open: ["☐", "waited for"], came: ["☑", "came"], "given up": ["☒", "given up"] };

/** The plan of a listener that a model drives: what it waits for, and what became of that. */
export const planView = ({ by, todos }) =>
  h(
    "section",
    { class: "plan", "aria-label": `Plan of ${by}` },
    h("p", { class: "soft" }, `Plan of ${by}`),
    h("ul", { role: "list" }, todos.map(entryView)),
  );

function entryView({ text, state }) {
  const [sign, said] = STATES[state] ?? STATES.open;
  return h(
    "li",
    {},
    h("span", { class: "sign", "aria-hidden": "true" }, sign),
    h("span", {}, text),
    h("span", { class: "soft" }, said),
  );
}

/** The view of a round of a model that was not the answer: what it said, what it chose, its tokens and cost. */
export function roundView(round) {
  const tokens = (round.input_tokens ?? 0) + (round.output_tokens ?? 0);
  const facts = [
    round.model,
    round.calls?.length > 0 && `chose ${round.calls.join(", ")}`,
    tokens > 0 && count(tokens, "token"),
    round.cost_usd > 0 && `$${round.cost_usd.toPrecision(2)}`,
  ];
  const name = round.agent ? `${round.agent} asked the model` : `Round ${round.round}`;
  return h(
    "details",
    { class: "call round" },
    h(
      "summary",
      {},
      h("span", { class: "call-name" }, name),
      h("span", { class: "call-given" }, facts.filter(Boolean).join(", ")),
      h("span", { class: "call-time" }, round.seconds === undefined ? "" : duration(round.seconds)),
    ),
    h(
      "div",
      { class: "call-inside" },
      round.text
        ? h("pre", { tabindex: 0, role: "group", "aria-label": `What the model said: ${name}` }, round.text)
        : h("p", { class: "soft" }, "It said nothing beside that."),
      round.messages > 0 &&
        h("p", { class: "soft" }, `${count(round.messages, "message")} sent, SHA-256 ${(round.prompt_sha256 ?? "").slice(0, 16)}…`),
    ),
  );
}

function state(call) {
  if (call.ok === undefined) return "…";
  const time = call.seconds === undefined ? "" : duration(call.seconds);
  return call.ok ? time : [h("span", { class: "sign bad" }, "✗ failed"), time && ` ${time}`];
}

function parts(call, thread) {
  const given = Object.entries(call.args);
  return [
    given.length > 0 &&
      h(
        "dl",
        { class: "pairs" },
        given.map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, plain(value)))),
      ),
    given.length === 0 && h("p", { class: "soft" }, "No arguments."),
    call.result !== undefined &&
      h("pre", { tabindex: 0, role: "group", "aria-label": `Result of ${call.name}` }, pretty(call.result)),
    call.cut && h("p", { class: "soft" }, call.whole ? `Cut here, of ${call.whole.toLocaleString("en")} characters.` : "Cut here."),
    thread &&
      daemon.operator &&
      h(
        "p",
        { class: "soft" },
        h("a", { href: `#/activity/thread/${encodeURIComponent(thread)}` }, `thread ${thread.slice(0, 4)}`),
      ),
  ];
}

function inShort(args) {
  return Object.entries(args)
    .map(([key, value]) => `${key}=${plain(value)}`)
    .join(" ");
}

const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function pretty(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
