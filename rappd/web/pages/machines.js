/** Machines: other computers on the network, pairing, calls, the outbox, and all of them together. */

import { daemon } from "../lib/daemon-state.js";
import { fill, h } from "../lib/dom.js";
import { listen } from "../lib/dom.js";
import { machinesView } from "../components/machines/machines-view.js";
import { neighborhoodView } from "../components/neighborhood/neighborhood-view.js";
import { operatorNotice } from "../components/layout/operator-notice.js";
import { outbox } from "../components/outbox/outbox-state.js";
import { outboxView } from "../components/outbox/outbox-view.js";
import { peerPage } from "../components/peers/peer-page.js";
import { failedFilesView } from "../components/agents/failed-files.js";
import { viewLinks } from "../components/layout/view-links.js";

const VIEWS = [
  ["", "All"],
  ["outbox", "Outbox"],
  ["neighborhood", "Neighborhood"],
];

export function mount(main) {
  const body = h("div", {});
  const views = h("nav", { class: "views", "aria-label": "Machines" });
  const troubles = failedFilesView();
  const column = h(
    "div",
    { class: "column" },
    h("header", { class: "head" }, h("h1", { tabindex: -1 }, "Machines"), views),
    troubles.element,
    body,
  );
  fill(main, h("section", { class: "page" }, column));
  let open = null;
  let rest = null;
  let ends = null;

  let drawn = "";
  const drawViews = () => {
    const [view = ""] = rest ?? [];
    const waiting = outbox.waiting.length;
    if (drawn === `${view} ${waiting}`) return;
    drawn = `${view} ${waiting}`;
    fill(views, viewLinks("machines", VIEWS, view === "peer" ? "" : view, { outbox: waiting || "" }));
  };
  const draw = () => {
    open?.close();
    open = null;
    ends?.();
    ends = null;
    const [view = "", key] = rest ?? [];
    drawViews();
    if (!daemon.operator) return fill(body, operatorNotice("see and pair other machines"));
    ends = outbox.show();
    if (view === "outbox") open = outboxView(body);
    else if (view === "neighborhood") open = neighborhoodView(body);
    else if (view === "peer" && key) open = peerPage(body, key);
    else open = machinesView(body);
  };
  const listeners = [listen("change", [outbox], drawViews), listen("operator", [daemon], draw)];
  return {
    go(now) {
      if (rest && rest.join() === now.join()) return;
      const moved = rest !== null;
      rest = now;
      draw();
      main.scrollTop = 0;
      if (moved && !document.querySelector("dialog[open]"))
        main.querySelector("h1").focus({ preventScroll: true });
    },
    close() {
      open?.close();
      ends?.();
      for (const end of listeners) end();
      troubles.close();
    },
  };
}
