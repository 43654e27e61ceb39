/** A form made of an agent's parameters, or of a listener's fields, to run it by itself. */

import { duration } from "../../lib/format.js";
import { fill, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { field } from "../ui/form-dialog.js";
import { attemptIn } from "../ui/problem.js";

const LONG = /text|content|message|body|source|code|html|markdown|prompt|description|note/i;

/** The form of the agent on `card`, of the brainstem or the twin `key`: `{element, focus()}`. */
export function runForm(card, key = "") {
  const inputs = inputsFor(card.parameters, card.listener?.fields);
  const errorPlace = h("div", {});
  const outcome = h("div", { role: "status" });
  const button = h("button", { type: "submit", class: "primary" }, `Run ${card.name}`);
  const form = h(
    "form",
    { class: "run-form", "aria-label": `Run ${card.name}` },
    inputs.map(({ element }) => element),
    inputs.length === 0 && h("p", { class: "soft" }, "It needs nothing to begin."),
    h("div", { class: "run-actions" }, button),
    errorPlace,
    outcome,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    fill(outcome, h("p", { class: "soft" }, "Running…"));
    let ran = null;
    await attemptIn(errorPlace, async () => {
      const args = Object.fromEntries(inputs.flatMap((one) => one.value()));
      ran = (await operations.agents.run({ twin: key, agent: card.name, args })) ?? null;
    });
    button.disabled = false;
    fill(outcome, ran && result(ran));
  });
  return { element: form, focus: () => (inputs[0]?.focus ?? (() => button.focus()))() };
}

function result({ ok, result: text, seconds, thread }) {
  return [
    h(
      "p",
      {},
      h("span", { class: `sign ${ok ? "good" : "bad"}` }, ok ? "✓ " : "✗ "),
      `${ok ? "Answered" : "Failed"} in ${duration(seconds)} `,
      thread && h("a", { href: `#/activity/thread/${encodeURIComponent(thread)}` }, "what happened"),
    ),
    h("pre", { class: "run-result", tabindex: 0, role: "region", "aria-label": "Answer" }, String(text)),
  ];
}

/** An input for each property of `schema`; `fields` are those of a listener, whose types say more than JSON can. */
function inputsFor(schema, fields = []) {
  const required = new Set(schema?.required ?? []);
  const kinds = new Map(fields.map(({ name, type }) => [name, type]));
  return Object.entries(schema?.properties ?? {}).map(([name, one]) =>
    inputFor(name, one ?? {}, required.has(name), kinds.get(name)),
  );
}

/** `{element, focus(), value()}`; `value()` gives `[[name, value]]`, or `[]` where it was left out. */
function inputFor(name, schema, needed, kind) {
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  const label = `${words(name)}${needed ? " (needed)" : ""}`;
  const more = { help: schema.description ?? "", required: needed };
  if (schema.enum) return choice(name, label, schema, needed, more);
  if (kind?.kind === "decimal") return decimal(name, label, schema, more);
  if (schema.format === "date-time") return dateTime(name, label, schema, more);
  if (type === "object" && schema.properties) return group(name, label, schema, needed, kind);
  if (type === "boolean") return tick(name, words(name), schema);
  if (type === "integer" || type === "number") return number(name, label, schema, type, more);
  if (type === "array" && (schema.items?.type ?? "string") === "string")
    return lines(name, label, schema, more);
  if (type === "array" || type === "object") return json(name, label, schema, type, more);
  const tag = LONG.test(name) ? "textarea" : "input";
  const one = field(label, {
    tag,
    value: schema.default ?? "",
    ...more,
    ...(tag === "textarea" && { rows: 3 }),
  });
  return made(one, () => (one.input.value === "" ? [] : [[name, one.input.value]]));
}

function choice(name, label, schema, needed, more) {
  const values = schema.enum.map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
  const first = schema.default === undefined ? "" : String(schema.default);
  const one = field(label, {
    tag: "select",
    options: first && needed ? values : ["", ...values],
    value: first,
    ...more,
  });
  return made(one, () => (one.input.value ? [[name, schema.enum[values.indexOf(one.input.value)]]] : []));
}

function tick(name, label, schema) {
  const input = h("input", { type: "checkbox", role: "switch" });
  input.checked = schema.default === true;
  const help = schema.description && h("span", { class: "soft help" }, schema.description);
  let touched = schema.default !== undefined;
  input.addEventListener("change", () => (touched = true));
  return {
    element: h("label", { class: "switch" }, h("span", {}, label, help), input),
    focus: () => input.focus(),
    value: () => (touched ? [[name, input.checked]] : []),
  };
}

function number(name, label, schema, type, more) {
  const one = field(label, {
    type: "number",
    class: "number",
    step: type === "integer" ? 1 : "any",
    min: schema.minimum,
    max: schema.maximum,
    value: schema.default ?? "",
    ...more,
  });
  return made(one, () => (one.input.value === "" ? [] : [[name, Number(one.input.value)]]));
}

/** Sent as it was typed: a number of JavaScript would lose digits. */
function decimal(name, label, schema, more) {
  const shape = "[ ]*[+\\-]?([0-9]+([.][0-9]*)?|[.][0-9]+)[ ]*";
  const told = { inputmode: "decimal", pattern: shape, title: "A decimal number, like 12.50" };
  const one = field(label, { ...told, value: schema.default ?? "", ...more });
  return made(one, () => (one.input.value.trim() === "" ? [] : [[name, one.input.value.trim()]]));
}

function dateTime(name, label, schema, more) {
  const one = field(label, { type: "datetime-local", step: 1, value: schema.default ?? "", ...more });
  return made(one, () => (one.input.value === "" ? [] : [[name, one.input.value]]));
}

/** An object in the payload: its own fields in a frame; left out as a whole where none of them has anything. */
function group(name, label, schema, needed, kind) {
  const inside = inputsFor(schema, kind?.fields);
  const asked = inside.flatMap(({ element }) => [...element.querySelectorAll("[required]")]);
  const value = () => Object.fromEntries(inside.flatMap((one) => one.value()));
  const element = h(
    "fieldset",
    { class: "run-group" },
    h("legend", {}, label),
    schema.description && h("p", { class: "soft" }, schema.description),
    inside.map((one) => one.element),
  );
  const settle = () => {
    const wanted = needed || Object.keys(value()).length > 0;
    for (const input of asked) input.required = wanted;
  };
  element.addEventListener("input", settle);
  settle();
  return {
    element,
    focus: () => inside[0]?.focus(),
    value: () => (needed || Object.keys(value()).length > 0 ? [[name, value()]] : []),
  };
}

function lines(name, label, schema, { help, required }) {
  const more = [help, "One on each line."].filter(Boolean).join(" ");
  const value = Array.isArray(schema.default) ? schema.default.join("\n") : "";
  const one = field(label, { tag: "textarea", rows: 2, value, help: more, required });
  return made(one, () => {
    const found = one.input.value
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    return found.length ? [[name, found]] : [];
  });
}

function json(name, label, schema, type, { help, required }) {
  const shape = type === "array" ? "[1, 2]" : '{"name": "value"}';
  const more = [help, `Written as JSON, like ${shape}.`].filter(Boolean).join(" ");
  const value = schema.default === undefined ? "" : JSON.stringify(schema.default, null, 2);
  const one = field(label, { tag: "textarea", rows: 3, spellcheck: "false", value, help: more, required });
  const check = () => {
    let wrong = "";
    try {
      if (one.input.value.trim()) JSON.parse(one.input.value);
    } catch {
      wrong = `This is not JSON. Write it like ${shape}.`;
    }
    one.input.setCustomValidity(wrong);
  };
  one.input.addEventListener("input", check);
  return made(one, () => (one.input.value.trim() ? [[name, JSON.parse(one.input.value)]] : []));
}

const made = (one, value) => ({ element: one.element, focus: () => one.input.focus(), value });

/** "memory_type" as people read it: "Memory type". */
function words(name) {
  const text = name.replaceAll("_", " ").replace(/([a-z])([A-Z])/g, "$1 $2");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
