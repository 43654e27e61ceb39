/** The organism: what exists here and who asked whom in the last hour, as a picture and as a table that says the same. */

import { breakable, fill, h } from "../../lib/dom.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { count } from "../../lib/format.js";
import { organism } from "../../lib/operations.js";
import { staleList } from "../ui/stale-list.js";
import { inOrder, pageOf, wordsOf } from "./organism-nodes.js";
import { organismPicture } from "./organism-picture.js";

const REST_MS = 4000; // between two looks, while much is going on

/** Fills `body`; follows what happens. `close()` when done. */
export function organismView(body) {
  const picture = organismPicture();
  const rows = h("div", {});
  const folded = h("details", { class: "fold" }, h("summary", {}, "Show as a table"), rows);
  let timer = 0;
  const list = staleList(body, {
    name: "organism",
    load: () => organism.graph(),
    draw: (graph) => {
      const nodes = inOrder(graph);
      picture.show(nodes, graph.edges);
      fill(rows, table(nodes));
      const asked = graph.edges.reduce((sum, { calls }) => sum + calls, 0);
      return [
        h("p", { class: "soft" }, `${count(nodes.length, "part")}, ${count(asked, "question")} in the last hour.`),
        picture.element,
        folded,
      ];
    },
  });
  const arrived = () => {
    timer ||= setTimeout(() => {
      timer = 0;
      list.refresh();
    }, REST_MS);
  };
  const sources = ["event", "agents", "machines"];
  for (const source of sources) daemonEvents.addEventListener(source, arrived);
  return {
    close() {
      clearTimeout(timer);
      for (const source of sources) daemonEvents.removeEventListener(source, arrived);
      picture.close();
      list.close();
    },
  };
}

function table(nodes) {
  const others = (rows, side) =>
    rows.length > 0
      ? h(
          "ul",
          { role: "list" },
          rows.map((edge) => h("li", {}, edge[side].name, h("span", { class: "soft" }, ` ${wordsOf(edge)}`))),
        )
      : h("span", { class: "soft" }, "nobody");
  return h(
    "div",
    { class: "organism-table", role: "region", tabindex: 0, "aria-label": "The same as a table" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ["Name", "Asked by", "Asks"].map((title) => h("th", { scope: "col" }, title)))),
      h(
        "tbody",
        {},
        nodes.map((node) =>
          h(
            "tr",
            {},
            h(
              "th",
              { scope: "row" },
              pageOf(node) ? h("a", { href: pageOf(node) }, breakable(node.name)) : breakable(node.name),
              h("p", { class: "soft" }, node.about),
            ),
            h("td", {}, others(node.from, "source")),
            h("td", {}, others(node.to, "target")),
          ),
        ),
      ),
    ),
  );
}
