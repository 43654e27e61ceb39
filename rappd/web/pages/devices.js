/** Devices: phones that joined, and letting one join by a QR code. */

import { daemon } from "../lib/daemon-state.js";
import { fill, h } from "../lib/dom.js";
import { listen } from "../lib/listen.js";
import { failedFilesView } from "../components/agents/failed-files.js";
import { devicesView } from "../components/devices/devices-view.js";
import { operatorNotice } from "../components/layout/operator-notice.js";

export function mount(main) {
  const body = h("div", {});
  const troubles = failedFilesView();
  const column = h(
    "div",
    { class: "column" },
    h("header", { class: "head" }, h("h1", { tabindex: -1 }, "Devices")),
    troubles.element,
    body,
  );
  fill(main, h("section", { class: "page" }, column));
  let open = null;
  const draw = () => {
    open?.close();
    open = null;
    if (daemon.operator) open = devicesView(body);
    else fill(body, operatorNotice("see phones and let one join"));
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
