/** One call to another machine. Its answer is untrusted: text, never markup. */

import { duration, stripControl, stripControlLines } from "../../lib/format.js";
import { fill, h, withCode } from "../../lib/dom.js";

/** The row of a call of `peerCalls`; `update()` draws what came of it. */
export function peerCallRow(call) {
  const outcome = h("div", { class: "peer-outcome" });
  const asked = [call.agent || call.twin, call.what].filter(Boolean).map(stripControl).join(": ");
  const element = h(
    "li",
    { class: "peer-call", "data-call": call.id },
    h("p", { class: "peer-asked" }, asked),
    outcome,
  );
  let drawn = "";
  const update = () => {
    if (call.state === drawn) return;
    drawn = call.state;
    fill(outcome, outcomes[call.state]?.(call) ?? stripControl(call.state));
  };
  update();
  return { element, update, close: () => undefined };
}

/** The text of a result: words as they are, anything else as JSON with line breaks. */
export function resultText(result) {
  return stripControlLines(typeof result === "string" ? result : JSON.stringify(result ?? "", null, 2));
}

const outcomes = {
  asking: (call) => h("p", { class: "soft waiting" }, "Asking ", h("bdi", {}, call.name), "…"),
  done: (call) => [
    h(
      "p",
      { class: "peer-result", tabindex: 0, role: "group", "aria-label": `Answer of ${call.name}` },
      resultText(call.result),
    ),
    h("p", { class: "soft" }, [
      "done on ",
      h("bdi", {}, call.name),
      !call.late && call.seconds !== undefined && ` in ${duration(call.seconds)}`,
      threadLink(call, ", "),
    ]),
  ],
  queued: (call) => [
    h(
      "p",
      {},
      h("span", { class: "sign warn" }, "! "),
      "Queued: ",
      h("bdi", {}, call.name),
      " is away. Goes by itself.",
    ),
    h("p", { class: "soft" }, h("a", { href: "#/machines/outbox" }, "Outbox"), threadLink(call, ", ")),
  ],
  accepted: (call) => [
    h("p", {}, h("bdi", {}, call.name), " works on it still. The answer comes by itself."),
    h("p", { class: "soft" }, h("a", { href: "#/machines/outbox" }, "Outbox"), threadLink(call, ", ")),
  ],
  failed: (call) =>
    h(
      "div",
      { class: "problem" },
      h(
        "p",
        {},
        h("span", { class: "sign bad" }, "✗ "),
        withCode(stripControl(call.error || "It didn't work.")),
      ),
      call.do &&
        h(
          "p",
          { class: "todo" },
          h("span", { "aria-hidden": "true" }, "→ "),
          withCode(stripControl(call.do)),
        ),
      call.thread && h("p", { class: "todo" }, threadLink(call)),
    ),
};

const threadLink = ({ thread }, before = "") =>
  thread && [
    before,
    h("a", { href: `#/activity/thread/${encodeURIComponent(thread)}` }, `thread ${thread.slice(0, 4)}`),
  ];
