/** Asking another machine something: words, and whom of it; below, what came of what was asked. */

import { field } from "../ui/form-dialog.js";
import { fill, h } from "../../lib/dom.js";
import { peers } from "../../lib/operations.js";
import { store, stored } from "../../lib/storage.js";
import { stripControl } from "../../lib/format.js";
import { nameOf, named, selectorOf } from "../machines/machine-words.js";
import { keyedList } from "../ui/keyed-list.js";
import { peerCallRow, resultText } from "./call-row.js";
import { peerCalls } from "./calls-state.js";
import { attemptIn } from "../ui/problem.js";
import { announce } from "../../lib/live-region.js";
import { openDialog } from "../ui/dialog.js";

const SHOWN = 10;

/** A form for the machine of `row`. `offers(agents, twins)`: whom of it one may choose. `close()` when done. */
export function askPeer(row) {
  const key = selectorOf(row);
  const draft = `ask ${key}`;
  const text = field("What to ask", { tag: "textarea", rows: 2, maxlength: 20_000, required: true });
  const whom = field("Who answers", { tag: "select" });
  const choice = h("div", {});
  const calls = keyedList("ol", "peer-calls", ({ id }) => id, peerCallRow);
  const button = h("button", { type: "submit", class: "primary" }, "Ask");
  const form = h(
    "form",
    { class: "peer-ask" },
    text.element,
    choice,
    h("div", { class: "dialog-actions" }, button),
  );
  text.input.value = stored(draft, "");
  text.input.addEventListener("input", () => store(draft, text.input.value || null));
  text.input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = text.input.value.trim();
    if (!words) return text.input.focus();
    const [kind, name] = whom.input.isConnected ? JSON.parse(whom.input.value) : ["", ""];
    text.input.value = "";
    store(draft, null);
    peerCalls.begin(row, { text: words, ...(kind && { [kind]: name }) }).then(tell);
    text.input.focus();
  });

  const draw = () => calls.show(peerCalls.with(key).slice(0, SHOWN));
  const tell = (call) => {
    if (call.state === "done") announce(`${call.name}: ${resultText(call.result)}`);
    else announce(call.state === "queued" ? `${call.name} is away; your call waits.` : (call.error ?? ""));
  };
  peerCalls.addEventListener("change", draw);
  draw();
  return {
    element: h("div", {}, form, calls.element),
    input: text.input,
    offers(agents, twins = []) {
      const before = whom.input.value;
      const options = [
        option("", "", `${nameOf(row)} itself`),
        agents.map(({ name }) => option("agent", name, stripControl(name))),
        twins.map((name) => option("twin", name, `${stripControl(name)}, a twin`)),
      ].flat();
      fill(whom.input, options);
      if (options.some(({ value }) => value === before)) whom.input.value = before;
      fill(choice, options.length > 1 && whom.element);
    },
    close() {
      peerCalls.removeEventListener("change", draw);
      calls.close();
    },
  };
}

/** The same in a dialog of its own. */
export function openAsk(row) {
  const form = askPeer(row);
  const errorPlace = h("div", {});
  const dialog = openDialog({
    title: "",
    build: () => h("div", { class: "dialog-body" }, form.element, errorPlace),
    closed: form.close,
  });
  fill(dialog.querySelector("h2"), "Ask ", named(row));
  form.input.focus();
  if (row.paired)
    attemptIn(errorPlace, async () => {
      const { peer } = await peers.show({ peer: row.fingerprint });
      form.offers(peer.agents_here ?? [], peer.twins_here ?? []);
    });
}

const option = (kind, name, shown) => h("option", { value: JSON.stringify([kind, name]) }, shown);
