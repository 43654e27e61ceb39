/** The list of models of the server in use, to choose for a conversation, for its twin, or for everybody. */

import { Problem, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { openDialog } from "../ui/dialog.js";
import { routesOf, twins } from "../twins/twins-state.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { limitsInWords } from "./model-limits.js";

const AUTOMATIC = "auto";
const SEARCH_FROM = 9;

/** Opens the list. Without a conversation it counts for everybody; `learn()` gives which model answers that one. */
export function openModels(conversation = null, learn = null) {
  const body = h("div", { class: "dialog-body" }, h("p", { class: "soft" }, "Asking which there are…"));
  const dialog = openDialog({ title: "Which model answers?", build: () => body });
  const close = () => dialog.close();
  show(body, close, conversation, learn);
}

async function show(body, close, conversation, learn) {
  const { provider = {} } = daemon.health ?? {};
  const elsewhere =
    daemon.operator &&
    h("a", { class: "button secondary", href: "#/settings", onclick: close }, "Set up another server");
  if (provider.state === "no model") {
    fill(body, h("p", {}, "No model is set up. Until then, agents are found by the words you type."), elsewhere);
    return;
  }
  let listed;
  let choices;
  try {
    [listed, choices] = await Promise.all([operations.models.list(), conversation && learn()]);
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
    fill(body, problemView(found));
    return;
  }
  const errorPlace = h("div", {});
  const scopes = scopesOf(choices && conversation);
  const before = { everybody: listed.current, ...choices };
  const rows = listed.models.map((model) => modelRow(model, model.id === (choices?.model ?? listed.current)));
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
    scopes.length > 1 && scopeChoice(scopes),
  );
  const scope = () => scopes.find(({ name }) => name === new FormData(list).get("scope")) ?? scopes[0];
  const choose = async (model) => {
    const chosen = scope();
    const former = before[chosen.name];
    if (!(await attemptIn(errorPlace, () => chooseModel(chosen, model)))) return;
    close();
    const usual = chosen.name === "everybody" ? "Chosen by itself from now on." : chosen.answers("The usual model");
    toast(model ? chosen.answers(model) : usual, {
      actions: former === model ? [] : [{ label: "Undo", run: () => chooseModel(chosen, former) }],
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
      actionButton("Automatic", () => choose(""), "quiet"),
      h("button", { type: "submit", class: "primary" }, "Use it"),
    ),
  );
  fill(
    body,
    h("p", { class: "soft" }, `From ${provider.name === "local model" ? "a server on this computer" : provider.name}.${forWhom(choices)}`),
    elsewhere,
    rows.length >= SEARCH_FROM && search,
    errorPlace,
    none,
    list,
  );
  (rows.length >= SEARCH_FROM ? search : list.querySelector("input:checked, input"))?.focus();
}

/** A sentence on what a choice for everybody leaves alone; "" where one chooses for less than everybody. */
const forWhom = (choices) =>
  choices ? "" : ` It counts for everybody who asks ${daemon.name}, but for conversations and twins with a model of their own.`;

function scopeChoice(scopes) {
  return h(
    "fieldset",
    { class: "model-scope" },
    h("legend", {}, "For whom?"),
    scopes.map(({ name, words }, at) =>
      h(
        "label",
        { class: "choice-line" },
        h("input", { type: "radio", name: "scope", value: name, checked: at === 0 }),
        h("span", {}, words),
      ),
    ),
  );
}

function modelRow({ id, name, available = true, limits = [] }, current) {
  const row = h(
    "label",
    { class: "choice-line model-row" },
    h("input", { type: "radio", name: "model", value: id, checked: current, disabled: !available, required: true }),
    h(
      "span",
      {},
      name || id,
      name && name !== id && h("span", { class: "soft" }, ` ${id}`),
      limits.length > 0 && h("span", { class: "soft help" }, limitsInWords(limits)),
    ),
  );
  row.dataset.words = `${id} ${name ?? ""}`.toLowerCase();
  return row;
}

/** For whom a model may be chosen here, the narrowest first: `{name, words, answers, choose(model)}`. */
function scopesOf(conversation) {
  const everybody = {
    name: "everybody",
    words: `Everybody who asks ${daemon.name}`,
    answers: (model) => `${model} answers from now on.`,
    choose: (model) => operations.models.set({ model }),
  };
  if (!conversation) return [everybody];
  const { key, session, name } = conversation;
  return [
    {
      name: "conversation",
      words: "This conversation",
      answers: (model) => `${model} answers here from now on.`,
      choose: (model) => post(`${routesOf(key)}/chat/model`, { session_id: session, model }),
    },
    key &&
      daemon.operator && {
        name: "twin",
        words: `${name}, in every conversation`,
        answers: (model) => `${model} answers for ${name} from now on.`,
        choose: (model) => operations.models.forTwin({ twin: key, model }),
      },
    everybody,
  ].filter(Boolean);
}

/** Chooses `model` within a scope; "" takes the choice back. Raises `Problem`. */
async function chooseModel(scope, model) {
  await scope.choose(model || AUTOMATIC);
  daemon.look();
  if (scope.name === "twin") twins.touch();
  daemon.dispatchEvent(new Event("model"));
}
