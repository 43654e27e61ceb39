/** Sources: repositories that agents come from. */

import { staleList } from "../ui/stale-list.js";
import { actionButton, h } from "../../lib/dom.js";
import { sources } from "../../lib/operations.js";
import { agentsChanged } from "./agent-import.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

/** The list of sources with the field that connects one. */
export function sourceList() {
  const errorPlace = h("div", {});
  const place = h("div", {});
  const opened = new Set();
  const list = staleList(place, {
    name: "sources",
    load: async () => (await sources.list()).repos,
    draw: (repos) => repos.map((repo) => sourceView(repo, opened, list)),
  });
  const field = h("input", {
    id: "source",
    type: "text",
    placeholder: "owner/repository",
    autocomplete: "off",
    spellcheck: "false",
  });
  const form = h(
    "form",
    { class: "choice" },
    h("label", { for: "source" }, "Connect a source"),
    h("div", { class: "field-row" }, field, h("button", { type: "submit", class: "secondary" }, "Connect")),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const url = field.value.trim();
    if (!url) return;
    if (await attemptIn(errorPlace, () => sources.connect({ url }))) {
      field.value = "";
      toast(`${url} connected.`, {
        actions: [{ label: "Undo", run: () => disconnect(url, errorPlace, list) }],
      });
    }
    list.refresh();
  });
  return { element: h("div", {}, place, form, errorPlace), close: list.close };
}

function sourceView(repo, opened, list) {
  const errorPlace = h("div", {});
  const name = repo.repo || repo.url;
  const element = h(
    "details",
    { class: "source", open: opened.has(repo.url) },
    h(
      "summary",
      {},
      h("span", {}, name),
      h("span", { class: "soft" }, `${repo.enabled_count} of ${repo.agents.length} in use`),
    ),
    h(
      "div",
      { class: "source-inside" },
      repo.agents.map((agent) => agentSwitch(repo, agent, errorPlace, list)),
      actionButton(
        "Disconnect",
        () => disconnect(repo.url, errorPlace, list, name),
        "quiet",
        { "aria-label": `Disconnect ${name}` },
      ),
      errorPlace,
    ),
  );
  element.addEventListener("toggle", () => (element.open ? opened.add(repo.url) : opened.delete(repo.url)));
  return element;
}

function agentSwitch(repo, agent, errorPlace, list) {
  const field = h("input", { type: "checkbox", role: "switch", id: `source-${repo.url}-${agent.id}` });
  field.checked = Boolean(agent.enabled);
  field.addEventListener("change", async () => {
    const enable = field.checked;
    const worked = await attemptIn(errorPlace, () =>
      sources.toggle({ url: repo.url, agent_id: agent.id, enable }),
    );
    if (worked) list.refresh();
    else field.checked = !enable;
    agentsChanged.dispatchEvent(new Event("change"));
  });
  return h(
    "label",
    { class: "switch" },
    h("span", {}, agent.name, h("span", { class: "soft help" }, agent.description)),
    field,
  );
}

async function disconnect(url, errorPlace, list, name = url) {
  const worked = await attemptIn(errorPlace, () => sources.disconnect({ url }));
  if (!worked) return;
  list.refresh();
  agentsChanged.dispatchEvent(new Event("change"));
  toast(`${name} disconnected.`, {
    actions: [
      {
        label: "Undo",
        run: () => attemptIn(errorPlace, () => sources.connect({ url })).then(list.refresh),
      },
    ],
  });
}
