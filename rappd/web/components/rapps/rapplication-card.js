/** Rapplications in lists: agents that bring a page of their own. */

import { post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, h } from "../../lib/dom.js";
import { agentsChanged } from "../agents/agent-import.js";
import { reachOf } from "../agents/reach.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

/** "uses its own storage alone; its service may read your files and the network": before it is installed. */
const reach = ({ reach: code = [] }) => [
  ...new Set(
    code.flatMap(({ path, may }) =>
      path.endsWith("_service.py") ? may.map((one) => `its service ${one}`) : may,
    ),
  ),
];

/** The card of one rapplication. */
export function rapplicationCard(rapp) {
  const errorPlace = h("div", {});
  const change = (verb, said, back) => async () => {
    const worked = await attemptIn(errorPlace, () => post(`/rapps/${verb}`, { id: rapp.id }));
    if (!worked) return;
    agentsChanged.dispatchEvent(new Event("change"));
    toast(`${rapp.name} ${said}.`, {
      actions: back ? [{ label: "Undo", run: change(back[0], back[1]) }] : [],
    });
  };
  const path = `#/agents/rapp/${encodeURIComponent(rapp.id)}`;
  return h(
    "li",
    { class: "card agent" },
    h(
      "div",
      { class: "card-words" },
      h("h3", {}, rapp.name),
      h("p", {}, rapp.description),
      !rapp.installed && reachOf({ reach: reach(rapp) }),
      errorPlace,
    ),
    h(
      "div",
      { class: "card-actions" },
      rapp.installed &&
        rapp.ui &&
        h("a", { class: "button secondary", href: path, "aria-label": `Open ${rapp.name}` }, "Open"),
      daemon.operator &&
        !rapp.installed &&
        actionButton(
          "Install",
          change("install", "installed", ["uninstall", "removed"]),
          "secondary",
          { "aria-label": `Install ${rapp.name}` },
        ),
      daemon.operator &&
        rapp.installed &&
        actionButton(
          "Remove",
          change("uninstall", "removed", ["install", "installed"]),
          "quiet",
          { "aria-label": `Remove ${rapp.name}` },
        ),
    ),
  );
}
