/** Cards of model servers that are typed in: any OpenAI-compatible one, and Azure. They are tested before they are used. */

import { actionButton, fill, h, withCode } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { field } from "../ui/form-dialog.js";
import { attemptIn } from "../ui/problem.js";
import { cardFrame } from "./card-frame.js";
import { useServer } from "./server-choice.js";

let count = 0;

/** Card for any OpenAI-compatible server. */
export const openaiCard = () =>
  serverCard({
    kind: "server",
    title: "Another server",
    sentence:
      "OpenAI, OpenRouter, Groq, Mistral and many others, or a computer in your network. What you write goes there.",
    fields: {
      url: ["Address", "Like https://api.openai.com/v1", "provider.url"],
      key: ["Key", "", "provider.key"],
      model: ["Model", "Empty: the first that the server lists. Test shows which there are.", "provider.model"],
    },
  });

/** Card for a deployment in Azure. */
export const azureCard = () =>
  serverCard({
    kind: "azure",
    title: "Azure OpenAI",
    sentence: "A model that your company runs in Microsoft's cloud. What you write goes there.",
    fields: {
      url: ["Address", "Like https://your-name.openai.azure.com", "azure.endpoint"],
      model: ["Deployment", "The name that you gave the model in Azure.", "azure.deployment"],
      key: ["Key", "", "azure.key"],
      version: ["Version", "Leave it as it is, unless Azure tells you another.", "azure.version"],
    },
  });

function serverCard({ kind, title, sentence, fields }) {
  const outcome = h("div", { class: "trial", role: "status" });
  const errorPlace = h("div", {});
  const inputs = Object.fromEntries(
    Object.entries(fields).map(([name, [label, help, setting]]) => [name, serverField(name, label, help, setting)]),
  );
  const models = h("datalist", { id: `models-${++count}` });
  inputs.model.input.setAttribute("list", models.id);
  const test = h("button", { type: "button", class: "secondary" }, "Test");
  const save = h("button", { type: "submit", class: "primary" }, "Save and use");
  const form = h(
    "form",
    { class: "server-form", "aria-label": title, novalidate: true },
    Object.values(inputs).map(({ element }) => element),
    models,
    outcome,
    errorPlace,
    h("div", { class: "server-actions" }, test, save),
  );
  const fold = h("details", { class: "fold" }, h("summary", {}, "Set up"), form);
  const frame = cardFrame(title, sentence, fold);
  fold.inert = true; // until update() has told what is set up: nobody tests an empty form
  let known = {};
  let trial = 0;

  const order = () => {
    const typed = Object.entries(inputs).map(([name, { input }]) => [name, input.value.trim()]);
    return { kind, ...Object.fromEntries(typed.filter(([name, text]) => text || name !== "key")) };
  };
  const forget = () => {
    trial += 1;
    fill(outcome);
  };
  const propose = (address) => {
    inputs.url.input.value = address;
    forget();
    tryIt();
  };
  const tryIt = async () => {
    const mine = ++trial;
    fill(outcome, h("p", { class: "soft" }, "Asking it one question…"));
    test.disabled = true;
    let found = null;
    await attemptIn(errorPlace, async () => (found = await operations.models.test(order())));
    test.disabled = false;
    if (mine !== trial) return;
    fill(outcome, found && outcomeOf(found, propose));
    if (!found) return;
    fill(models, found.models.map((model) => h("option", { value: model })));
    if (found.works && !inputs.model.input.value) inputs.model.input.value = found.model;
  };
  test.addEventListener("click", tryIt);
  form.addEventListener("input", forget);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (save.disabled) return;
    save.disabled = true;
    const wanted = order();
    const name = wanted.model ? `${wanted.model} answers` : "It answers";
    if (!wanted.url) {
      fill(outcome, h("p", {}, h("span", { class: "sign bad" }, "✗ "), "The address is missing."));
      inputs.url.input.focus();
    } else if (await attemptIn(errorPlace, () => useServer(wanted, name))) {
      inputs.key.input.value = "";
      fold.open = false;
    }
    save.disabled = false;
  });
  return {
    element: frame.element,
    /** Opens the form and goes to its first field. */
    open() {
      fold.open = true;
      Object.values(inputs)[0].input.focus();
      frame.element.scrollIntoView({ block: "center" });
    },
    update(servers) {
      const now = servers[kind];
      fold.inert = false;
      frame.limits(servers.used === kind ? servers.limits : []);
      frame.mark(servers.used === kind ? "used" : now.url ? "ready" : "");
      fill(fold.firstElementChild, now.url ? "Change" : "Set up");
      for (const [name, { input }] of Object.entries(inputs)) {
        if (name === "key") input.placeholder = now.key ? "A key is kept here; type to replace it" : "";
        // Typed text stays.
        else if (input.value === (known[name] ?? "")) input.value = now[name] ?? "";
      }
      known = now;
    },
  };
}

function serverField(name, label, help, setting) {
  const secret = name === "key";
  const made = field(label, {
    type: secret ? "password" : "text",
    inputmode: name === "url" ? "url" : null,
    help: secret ? "Stays on this computer, and is sent to that server alone." : help,
    autocomplete: secret ? "new-password" : "off",
  });
  made.element.append(h("code", { class: "raw-name", "aria-hidden": "true" }, setting));
  return made;
}

function outcomeOf({ works, text, said, server, do: todo, model, seconds, address }, propose) {
  if (works)
    return h(
      "p",
      {},
      h("span", { class: "sign good" }, "✓ "),
      `It works: ${model} answered${seconds ? ` in ${seconds} s` : ""}${server ? ` (${server})` : ""}.`,
    );
  return [
    h("p", {}, h("span", { class: "sign bad" }, "✗ "), text),
    said && h("p", { class: "soft" }, `It said: “${said}”`),
    todo && !address && h("p", { class: "soft" }, h("span", { "aria-hidden": "true" }, "→ "), withCode(todo)),
    address &&
      actionButton(`Use ${address}`, () => propose(address)),
  ];
}
