/** Card of model servers on this computer: those found with their models, or how to install one. */

import { actionButton, fill, h, withCode } from "../../lib/dom.js";
import { attemptIn } from "../ui/problem.js";
import { cardFrame } from "./card-frame.js";
import { downloadsUnderWay, modelDownload } from "./model-download.js";
import { serverChoice, useServer } from "./server-choice.js";

const OLLAMA = "Ollama";
const FIRST_MODEL = "`ollama pull llama3.2`";

/** The card; `update(servers)` takes what `/models/servers` tells. */
export function localCard() {
  const found = h("div", { class: "server-body" });
  const errorPlace = h("div", {});
  const frame = cardFrame(
    "On this computer",
    "Free, and what you write stays here. Needs a computer with some memory to spare.",
    found,
    errorPlace,
  );
  let drawn = "";
  const update = ({ used, local, limits }) => {
    frame.limits(used === "local" ? limits : []);
    const accepted = local.servers.some(({ server }) => server === local.accepted);
    frame.mark(used === "local" ? "used" : accepted ? "ready" : "");
    const text = JSON.stringify([used, local]);
    if (text === drawn) return;
    drawn = text;
    const usable = local.servers.filter(({ agent }) => !agent);
    fill(
      found,
      local.servers.filter(({ agent }) => agent).map(warning),
      usable.length ? usable.map((server) => serverRow(server, used, local.accepted, errorPlace)) : missing(local),
      actionButton("Look again", look, "quiet"),
    );
  };
  const look = () => serverChoice.dispatchEvent(new Event("change"));
  return { element: frame.element, update };
}

function serverRow({ server, name, where, models }, used, accepted, errorPlace) {
  const called = name === "local model" ? "A model server" : name;
  const download = name === OLLAMA ? ollamaDownload(server) : null;
  if (!models.length && download) {
    return h("div", { class: "server-found" }, h("p", {}, `${called} runs here, but has no model yet.`), download);
  }
  if (!models.length) {
    return h(
      "div",
      {},
      h("p", {}, `${called} runs here, but has no model yet.`),
      h("p", { class: "soft" }, withCode(`In a terminal: ${FIRST_MODEL}, then look again.`)),
    );
  }
  const id = `local-${where.replace(/\W/g, "-")}`;
  const select = h("select", { id }, models.map((model) => h("option", { value: model }, model)));
  const isUsed = used === "local" && server === accepted;
  return h(
    "div",
    { class: "server-found" },
    h("p", {}, `${called} runs here. `, h("span", { class: "soft" }, `Found at ${where}.`)),
    h("label", { for: id }, "Model"),
    h(
      "div",
      { class: "field-row" },
      select,
      actionButton(
        isUsed ? "Use this model" : "Use it",
        () =>
          attemptIn(errorPlace, () =>
            useServer({ kind: "local", server, model: select.value }, `${called} answers with ${select.value}`),
          ),
        isUsed ? "secondary" : "primary",
      ),
    ),
    download && h("details", { class: "fold" }, h("summary", {}, "Download another model"), download),
  );
}

/** A field for a model's name with its button; a download that is under way already goes on showing. */
function ollamaDownload(server) {
  const { element, follow } = modelDownload({ server, arrived: () => serverChoice.dispatchEvent(new Event("change")) });
  downloadsUnderWay().then(
    ([model]) => {
      if (!model) return;
      const fold = element.closest("details");
      if (fold) fold.open = true;
      follow(model);
    },
    () => undefined, // the button stays
  );
  return element;
}

function missing({ looked }) {
  if (!looked)
    return h("p", { class: "soft" }, "Looking is switched off, under “Models on this computer” in All settings.");
  return [
    h("p", {}, "No model was found on this computer. The easiest way to have one is Ollama:"),
    h(
      "ol",
      { class: "steps" },
      h(
        "li",
        {},
        "Install it from ",
        h("a", { href: "https://ollama.com/download", target: "_blank", rel: "noopener noreferrer" }, "ollama.com/download"),
        ".",
      ),
      h("li", {}, withCode(`In a terminal: ${FIRST_MODEL} (2 GB).`)),
      h("li", {}, "Come back and look again."),
    ),
  ];
}

const warning = ({ server }) =>
  h(
    "p",
    { class: "warning", role: "alert" },
    `An agent on this computer pretends to be a model (${server}). It is not used. Remove the agent that you do not know.`,
  );
