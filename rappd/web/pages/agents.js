/** Agents: descriptions, origins, and quarantined files. */

import { get } from "../lib/api.js";
import { agentCard, stateOf } from "../components/agents/agent-card.js";
import { agentDetail } from "../components/agents/agent-detail.js";
import { staleList } from "../components/ui/stale-list.js";
import { daemon } from "../lib/daemon-state.js";
import { hideDetail, showDetail } from "../components/ui/detail-panel.js";
import { fill, h } from "../lib/dom.js";
import { agentsChanged, chooseFile, importFiles } from "../components/agents/agent-import.js";
import { operatorNotice } from "../components/layout/operator-notice.js";
import { rapplicationCard, rapplicationPage } from "../components/agents/rapplication-card.js";
import { quarantinedFiles, quarantinedList } from "../components/agents/quarantined-files.js";
import { go } from "../lib/router.js";
import { failedFilesView } from "../components/agents/failed-files.js";

export function mount(main, { tryIt }) {
  const place = h("div", {});
  const controls = h("div", { class: "controls" });
  const troubles = failedFilesView();
  const aside = h("aside", { class: "detail", "aria-label": "Details", hidden: true });
  const column = h(
    "div",
    { class: "column" },
    h("header", { class: "head" }, h("h1", { tabindex: -1 }, "Agents"), controls),
    troubles.element,
    place,
  );
  const page = h("section", { class: "page" }, column, aside);
  const framed = h("div", { class: "framed", hidden: true });
  fill(main, page, framed);
  let known = null;
  let rest = [];
  let shown = "";

  const list = staleList(place, {
    name: "agents",
    load: async () => {
      const [agents, rapps] = await Promise.all([get("/agents"), get("/rapps").catch(noRapps)]);
      const held = await quarantinedFiles(agents.files);
      return { files: agents.files, rapps: rapps.rapps ?? [], held };
    },
    draw: (data) => {
      known = data;
      queueMicrotask(showRest);
      return lists(data, tryIt);
    },
  });

  const drawControls = () =>
    fill(
      controls,
      daemon.operator ? chooseFile("Add a file", tryIt) : operatorNotice("add, remove or approve agents"),
    );
  const showRest = () => {
    if (!known) return;
    const now = rest.join("/");
    const isRapp = rest[0] === "rapp" && rest.length > 1;
    const rapp = isRapp && known.rapps.find(({ id }) => id === rest[1]);
    page.hidden = Boolean(rapp?.ui);
    framed.hidden = !page.hidden;
    const { file, card } = all(known.files).find((one) => isReady(one) && one.card.name === rest[0]) ?? {};
    if (!file || isRapp) hideDetail();
    if (now === shown) return;
    shown = now;
    fill(framed, rapp?.ui ? rapplicationPage(rapp) : null);
    if (!file || isRapp) return;
    showDetail(aside, { title: card.name, content: agentDetail(file, card), closed: () => go("agents") });
  };

  agentsChanged.addEventListener("change", list.refresh);
  daemon.addEventListener("operator", drawControls);
  drawControls();
  return {
    go(now) {
      rest = now;
      showRest();
    },
    drops: () => ({ words: "Drop to add the agent", take: (files) => importFiles(files, tryIt) }),
    close() {
      hideDetail();
      agentsChanged.removeEventListener("change", list.refresh);
      daemon.removeEventListener("operator", drawControls);
      troubles.close();
      list.close();
    },
  };
}

function lists({ files, rapps, held = [] }, tryIt) {
  const every = all(files);
  const those = (state) => every.filter(({ card }) => stateOf(card) === state);
  const [cartridges, waiting, faulty] = ["cartridge", "waiting", "faulty"].map(those);
  const rest = every.filter(({ card }) => !card.quarantined);
  const quarantined = waiting.length + held.length;
  const cards = (some) =>
    h(
      "ul",
      { class: "cards" },
      some.map(({ file, card }) => agentCard(file, card, { tryIt })),
    );
  return [
    quarantined > 0 && [
      h("h2", {}, `Waiting for your approval, ${quarantined}`),
      waiting.length > 0 && cards(waiting),
      quarantinedList(held),
    ],
    faulty.length > 0 && [h("h2", {}, `Not running, ${faulty.length}`), cards(faulty)],
    quarantined + faulty.length > 0 && rest.length > 0 && h("h2", {}, `Ready, ${rest.filter(isReady).length}`),
    rest.length > 0 && cards(rest),
    cartridges.length > 0 && [h("h2", {}, "Cartridges"), cards(cartridges)],
    every.length === 0 &&
      h("p", { class: "plain" }, "No agents yet. Drop a file that ends in _agent.py here."),
    rapps.length > 0 && [h("h2", {}, "Apps"), h("ul", { class: "cards" }, rapps.map(rapplicationCard))],
  ];
}

const all = (files) => files.flatMap((file) => (file.cards ?? []).map((card) => ({ file, card })));
const isReady = ({ card }) => !card.quarantined && !card.shadowed_by;

/** A daemon that lists no rapplications still lists agents. */
function noRapps(found) {
  if (found.away) throw found;
  return { rapps: [] };
}
