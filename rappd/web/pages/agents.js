/** Agents: the owner's own and those that came with rappd; one of them in the editor; and what is remembered. */

import { agentDetail } from "../components/agents/agent-detail.js";
import { agentLists, allCards, isReady } from "../components/agents/agent-lists.js";
import { staleList } from "../components/ui/stale-list.js";
import { daemon } from "../lib/daemon-state.js";
import { hideDetail, showDetail } from "../components/ui/detail-panel.js";
import { fill, h } from "../lib/dom.js";
import { agentsChanged, chooseFile, importFiles } from "../components/agents/agent-import.js";
import { newAgentButton } from "../components/agents/new-agent.js";
import { agentEditor } from "../components/editor/agent-editor.js";
import { allDrafts } from "../components/editor/drafts.js";
import { operatorNotice } from "../components/layout/operator-notice.js";
import { viewLinks } from "../components/layout/view-links.js";
import { memoryView } from "../components/memory/memory-view.js";
import { rapplicationPage } from "../components/rapps/rapplication-page.js";
import { quarantinedFiles } from "../components/agents/quarantined-files.js";
import * as operations from "../lib/operations.js";
import { go } from "../lib/router.js";
import { failedFilesView } from "../components/agents/failed-files.js";

const VIEWS = [
  ["", "Agents"],
  ["memory", "Memory"],
];

export function mount(main, { tryIt }) {
  const place = h("div", {});
  const apart = h("div", { hidden: true }); // Memory, or the editor
  const controls = h("div", { class: "controls" });
  const views = h("nav", { class: "views", "aria-label": "Agents" });
  const troubles = failedFilesView();
  const aside = h("aside", { class: "detail", "aria-label": "Details", hidden: true });
  const column = h(
    "div",
    { class: "column" },
    h("header", { class: "head" }, h("h1", { tabindex: -1 }, "Agents"), views, controls),
    troubles.element,
    place,
    apart,
  );
  const page = h("section", { class: "page" }, column, aside);
  const framed = h("div", { class: "framed", hidden: true });
  fill(main, page, framed);
  let known = null;
  let rest = [];
  let shown = "";
  let open = null;
  let opened = null;

  const list = staleList(place, {
    name: "agents",
    load: async () => {
      const [agents, rapps] = await Promise.all([operations.agents.list(), operations.rapps.list().catch(noRapps)]);
      const held = await quarantinedFiles(agents.files);
      const drafts = daemon.operator ? allDrafts().map(({ key, file }) => ({ key, file })) : [];
      return { files: agents.files, rapps: rapps.rapps ?? [], held, drafts };
    },
    draw: (data) => {
      known = data;
      queueMicrotask(showRest);
      return agentLists(data, tryIt);
    },
  });

  const drawControls = () =>
    fill(
      controls,
      daemon.operator
        ? [newAgentButton(), chooseFile("Add a file", tryIt)]
        : operatorNotice("add, remove or approve agents"),
    );
  const showApart = () => {
    const [view, one = "", key = ""] = rest;
    const wanted =
      view === "memory" || (view === "edit" && one) ? `${rest.join("/")} ${daemon.operator}` : "";
    if (wanted !== opened) {
      const moved = opened !== null;
      open?.close();
      open = null;
      opened = wanted;
      if (moved && !wanted) list.refresh(); // the editor may have left a draft
      main.scrollTop = 0;
      if (moved) main.querySelector("h1").focus({ preventScroll: true });
      fill(apart);
      if (wanted) open = view === "edit" ? agentEditor(apart, one, key) : memoryView(apart, one, key);
    }
    apart.hidden = !wanted;
    place.hidden = controls.hidden = Boolean(wanted);
    views.hidden = view === "edit";
    page.classList.toggle("wide", view === "edit");
    fill(views, viewLinks("agents", VIEWS, view === "memory" ? "memory" : ""));
    return Boolean(wanted);
  };
  const showRest = () => {
    if (showApart()) hideDetail();
    if (!known) return;
    const now = rest.join("/");
    const isRapp = rest[0] === "rapp" && rest.length > 1;
    const rapp = isRapp && known.rapps.find(({ id }) => id === rest[1]);
    page.hidden = Boolean(rapp?.ui);
    framed.hidden = !page.hidden;
    const { file, card } =
      (!opened && allCards(known.files).find((one) => isReady(one) && one.card.name === rest[0])) || {};
    if (!file || isRapp) hideDetail();
    if (now === shown) return;
    shown = now;
    fill(framed, rapp?.ui ? rapplicationPage(rapp) : null);
    if (!file || isRapp) return;
    showDetail(aside, { title: card.name, content: agentDetail(file, card), closed: () => go("agents") });
  };
  const operatorChanged = () => {
    drawControls();
    showRest();
  };

  agentsChanged.addEventListener("change", list.refresh);
  daemon.addEventListener("operator", operatorChanged);
  drawControls();
  return {
    go(now) {
      rest = now;
      showRest();
    },
    drops: () => ({ words: "Drop to add the agent", take: (files) => importFiles(files, tryIt) }),
    close() {
      open?.close();
      hideDetail();
      agentsChanged.removeEventListener("change", list.refresh);
      daemon.removeEventListener("operator", operatorChanged);
      troubles.close();
      list.close();
    },
  };
}

/** A daemon that lists no rapplications still lists agents. */
function noRapps(found) {
  if (found.away) throw found;
  return { rapps: [] };
}
