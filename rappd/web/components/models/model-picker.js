/** The model in use, as a button beside the message box; it opens the list of models to choose from. */

import { Problem, get, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h, icon } from "../../lib/dom.js";
import { openDialog } from "../ui/dialog.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

const SEARCH_FROM = 9;
const AUTOMATIC = "auto";

/** The button. `close()` when it leaves the page. */
export function modelPicker() {
  const name = h("span", {});
  const element = h(
    "button",
    { type: "button", class: "quiet small model-picker", onclick: openModels },
    name,
    icon("chevron", "icon turned"),
  );
  const draw = () => {
    const provider = daemon.health?.provider;
    element.hidden = !provider || (!daemon.operator && provider.state === "no model");
    const model = provider?.state === "no model" ? "No model" : provider?.model || provider?.name || "";
    fill(name, model);
    element.setAttribute("aria-label", `Model: ${model}. Choose another.`);
  };
  for (const event of ["change", "operator"]) daemon.addEventListener(event, draw);
  draw();
  return {
    element,
    close: () => ["change", "operator"].forEach((event) => daemon.removeEventListener(event, draw)),
  };
}

/** Opens the list of models of the server in use. */
export function openModels() {
  const body = h("div", { class: "dialog-body" }, h("p", { class: "soft" }, "Asking which there are…"));
  const dialog = openDialog({ title: "Which model answers?", build: () => body });
  const close = () => dialog.close();
  show(body, close);
}

async function show(body, close) {
  const { provider = {} } = daemon.health ?? {};
  const elsewhere =
    daemon.operator &&
    h("a", { class: "button secondary", href: "#/settings", onclick: close }, "Set up another server");
  if (provider.state === "no model") {
    fill(body, h("p", {}, "No model is set up. Until then, agents are found by the words you type."), elsewhere);
    return;
  }
  let listed;
  try {
    listed = await get("/models");
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
    fill(body, problemView(found));
    return;
  }
  const errorPlace = h("div", {});
  const rows = listed.models.map((model) => modelRow(model, model.id === listed.current));
  const search = h("input", { type: "search", "aria-label": "Search models", placeholder: "Search…" });
  const none = h("p", { class: "soft", hidden: true }, "No model is called that.");
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.dataset.words.includes(wanted);
    none.hidden = rows.some((row) => !row.hidden);
  });
  const list = h(
    "form",
    { class: "model-list" },
    h("fieldset", {}, h("legend", { class: "visually-hidden" }, "Models"), rows),
  );
  const choose = async (model) => {
    const before = listed.current;
    if (!(await attemptIn(errorPlace, () => post("/models/set", { model })))) return;
    close();
    daemon.look();
    const undo = { label: "Undo", run: () => post("/models/set", { model: before }).then(() => daemon.look()) };
    toast(model === AUTOMATIC ? "Chosen by itself from now on." : `${model} answers from now on.`, {
      actions: before && before !== model ? [undo] : [],
    });
  };
  list.addEventListener("submit", (event) => {
    event.preventDefault();
    choose(new FormData(list).get("model"));
  });
  list.append(
    h(
      "div",
      { class: "dialog-actions dialog-foot" },
      h("button", { type: "button", class: "quiet", onclick: () => choose(AUTOMATIC) }, "Automatic"),
      h("button", { type: "submit", class: "primary" }, "Use it"),
    ),
  );
  fill(
    body,
    h("p", { class: "soft" }, `From ${provider.name === "local model" ? "a server on this computer" : provider.name}. It counts for everybody who asks ${daemon.name}.`),
    elsewhere,
    rows.length >= SEARCH_FROM && search,
    errorPlace,
    none,
    list,
  );
  (rows.length >= SEARCH_FROM ? search : list.querySelector("input:checked, input"))?.focus();
}

function modelRow({ id, name, available = true }, current) {
  const row = h(
    "label",
    { class: "choice-line model-row" },
    h("input", { type: "radio", name: "model", value: id, checked: current, disabled: !available, required: true }),
    h("span", {}, name || id, name && name !== id && h("span", { class: "soft" }, ` ${id}`)),
  );
  row.dataset.words = `${id} ${name ?? ""}`.toLowerCase();
  return row;
}
