/** A page of one view that the operator alone sees; everybody else gets a notice in its place. */

import { daemon } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";
import { listen } from "../../lib/dom.js";
import { failedFilesView } from "../agents/failed-files.js";
import { operatorNotice } from "./operator-notice.js";

/** A page's `mount`. `view(place)` fills it and returns `{close()}`; `can` completes the notice's "To …". */
export const operatorPage = (title, can, view) => (main) => {
  const body = h("div", {});
  const troubles = failedFilesView();
  const heading = h("header", { class: "head" }, h("h1", { tabindex: -1 }, title));
  fill(main, h("section", { class: "page" }, h("div", { class: "column" }, heading, troubles.element, body)));
  let open = null;
  const draw = () => {
    open?.close();
    open = null;
    if (daemon.operator) open = view(body);
    else fill(body, operatorNotice(can));
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
};
