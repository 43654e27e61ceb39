/** Twins: those on this machine; eggs, lineage, cartridges, and archived twins. */

import { staleList } from "../components/ui/stale-list.js";
import { cartridgesView } from "../components/cartridges/cartridges-view.js";
import { openEggs } from "../components/eggs/egg-import.js";
import { eggsView } from "../components/eggs/eggs-view.js";
import { daemon } from "../lib/daemon-state.js";
import { fill, h } from "../lib/dom.js";
import { importFiles } from "../components/agents/agent-import.js";
import { families, lineage } from "../components/twins/lineage.js";
import { daemonEvents } from "../lib/event-stream.js";
import * as operations from "../lib/operations.js";
import { operatorNotice } from "../components/layout/operator-notice.js";
import { viewLinks } from "../components/layout/view-links.js";
import { archivedTwins } from "../components/twins/archived-twins.js";
import { failedFilesView } from "../components/agents/failed-files.js";
import { twinPage } from "../components/twins/twin-page.js";
import { twinsView } from "../components/twins/twins-view.js";
import { twins } from "../components/twins/twins-state.js";

const VIEWS = [
  ["", "Here"],
  ["lineage", "Lineage"],
  ["eggs", "Eggs"],
  ["cartridges", "Cartridges"],
  ["archived", "Archived"],
];
const NEWS_MS = 800;

export function mount(main, { tryIt }) {
  const body = h("div", {});
  const views = h("nav", { class: "views", "aria-label": "Twins" });
  const troubles = failedFilesView();
  const column = h(
    "div",
    { class: "column" },
    h("header", { class: "head" }, h("h1", { tabindex: -1 }, "Twins"), views),
    troubles.element,
    body,
  );
  fill(main, h("section", { class: "page" }, column));
  let open = null;
  let rest = null;
  let soon = 0;

  const draw = () => {
    open?.close();
    open = null;
    const [view = "", key] = rest ?? [];
    fill(views, viewLinks("twins", VIEWS, view === "twin" ? "" : view));
    if (view === "cartridges") open = cartridgesView(body); // they run in the page, which needs no right
    else if (!daemon.operator) fill(body, operatorNotice("see your twins and open eggs"));
    else if (view === "lineage") open = lineageView(body);
    else if (view === "eggs") open = eggsView(body);
    else if (view === "archived") open = archivedTwins(body);
    else if (view === "twin" && key) open = twinPage(body, key, tryIt);
    else open = twinsView(body);
  };
  /** A turn may have made a twin, or one may have talked. */
  const happened = () => {
    clearTimeout(soon);
    soon = setTimeout(() => twins.touch(), NEWS_MS);
  };
  daemonEvents.addEventListener("event", happened);
  daemon.addEventListener("operator", draw);
  return {
    go(now) {
      if (rest && rest.join() === now.join()) return;
      const moved = rest !== null;
      rest = now;
      draw();
      main.scrollTop = 0;
      if (moved) main.querySelector("h1").focus({ preventScroll: true });
    },
    drops: (target) => open?.drops?.(target) ?? (daemon.operator ? dropHere(rest, tryIt) : null),
    close() {
      clearTimeout(soon);
      open?.close();
      daemonEvents.removeEventListener("event", happened);
      daemon.removeEventListener("operator", draw);
      troubles.close();
    },
  };
}

/** Eggs are opened wherever they fall; agents only on the page of the twin that shall have them. */
function dropHere([view, key], tryIt) {
  if (view !== "twin") return { words: "Drop to open the egg", take: openEggs };
  const isAgent = ({ name }) => name.endsWith(".py");
  return {
    words: "Drop an egg to open it, an agent to add it",
    take(files) {
      const agents = files.filter(isAgent);
      const eggs = files.filter((file) => !isAgent(file));
      if (agents.length) importFiles(agents, tryIt, key);
      if (eggs.length) openEggs(eggs);
    },
  };
}

function lineageView(place) {
  let family = null;
  const list = staleList(place, {
    name: "lineage",
    load: async () => (await operations.twins.lineage()).lineage ?? [],
    draw: (members) => {
      family?.close();
      family = members.length ? lineage(members) : null;
      if (!family) return h("p", { class: "plain" }, "No twin lives here yet.");
      return [h("p", { class: "soft" }, families(members)), family.element];
    },
  });
  twins.addEventListener("change", list.refresh);
  return {
    close() {
      twins.removeEventListener("change", list.refresh);
      family?.close();
      list.close();
    },
  };
}
