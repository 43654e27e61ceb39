/** Waiting: all that waits for the owner, answered here. */

import { daemon } from "../lib/daemon-state.js";
import { fill, h } from "../lib/dom.js";
import { listen } from "../lib/listen.js";
import { failedFilesView } from "../components/agents/failed-files.js";
import { operatorNotice } from "../components/layout/operator-notice.js";
import { waitingList } from "../components/waiting/waiting-list.js";

export function mount(main) {
  const body = h("div", {});
  const troubles = failedFilesView();
  const heading = h("h1", { tabindex: -1 }, "Waiting for you");
  fill(
    main,
    h("section", { class: "page" }, h("div", { class: "column" }, h("header", { class: "head" }, heading), troubles.element, body)),
  );
  let open = null;
  const draw = () => {
    open?.close();
    open = null;
    if (daemon.operator) open = waitingList(body);
    else fill(body, operatorNotice("see what waits for you, and answer it"));
  };
  const end = listen("operator", [daemon], draw);
  draw();
  return {
    go: () => undefined,
    close() {
      open?.close();
      end();
      troubles.close();
    },
  };
}
