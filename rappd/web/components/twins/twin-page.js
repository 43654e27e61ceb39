/** One twin by itself: its soul, its agents, where it comes from, and what can be done with it. */

import { agentCard } from "../agents/agent-card.js";
import { staleList } from "../ui/stale-list.js";
import { count, onDay } from "../../lib/format.js";
import { buddyLine } from "../cartridges/buddy.js";
import { checkpoints } from "./checkpoints.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { quarantinedFiles, quarantinedList } from "../agents/quarantined-files.js";
import { agentsChanged, chooseFile } from "../agents/agent-import.js";
import { newAgentButton } from "../agents/new-agent.js";
import { lineage } from "./lineage.js";
import { eggLine } from "../eggs/packed-egg.js";
import { attemptIn } from "../ui/problem.js";
import { bringBack } from "./archived-twins.js";
import { openSoul } from "./soul-dialog.js";
import { twinActions } from "./twin-card.js";
import { facts, state } from "./twin-words.js";
import { twins } from "./twins-state.js";

/** Fills `place` with the twin `key`; `close()` when done. */
export function twinPage(place, key, tryIt) {
  const head = h("div", { class: "twin-head" });
  const errorPlace = h("div", {});
  const egg = eggLine(key);
  const body = h("div", {});
  const life = h("div", {});
  let family = null;
  let buddy = null;
  let kept = null;
  fill(
    place,
    h("a", { class: "button quiet back-link", href: "#/twins" }, icon("chevron", "icon back"), "Twins"),
    head,
    life,
    egg.element,
    errorPlace,
    body,
  );

  const list = staleList(body, {
    name: `twin ${key}`,
    load: async () => {
      const [{ twin }, { lineage: kin = [] }] = await Promise.all([
        operations.twins.show({ twin: key }),
        operations.twins.lineage({ twin: key }),
      ]);
      drawLife(twin); // it changes as time goes, the rest does not
      delete twin.buddy;
      const files = twin.state === "archived" ? [] : ((await operations.agents.list({ twin: key })).files ?? []);
      const held = twin.state === "archived" ? [] : await quarantinedFiles(files, key);
      return { twin, kin, files, held };
    },
    draw: ({ twin, kin, files, held = [] }) => {
      drawHead(twin);
      family?.close();
      family = lineage(kin, key);
      kept?.close();
      kept = twin.state === "archived" ? null : checkpoints(key, twin.name, list.refresh);
      return [
        soulPart(twin),
        agentsPart(twin, files, held),
        twin.state !== "archived" && memoryPart(twin),
        kept && part("Checkpoints", kept.element, kept.control),
        lineagePart(family),
        aboutPart(twin),
      ];
    },
  });

  function drawHead(twin) {
    const archived = twin.state === "archived";
    fill(
      head,
      h(
        "div",
        { class: "card-words" },
        h("h2", {}, twin.name),
        h("p", {}, state(twin)),
        h("p", { class: "soft" }, facts(twin)),
      ),
      h("div", { class: "card-actions" }, archived ? back(twin) : twinActions(() => twin, errorPlace)),
    );
  }

  function drawLife(twin) {
    if (!twin.buddy) return;
    buddy ??= buddyLine(twin, { whole: true });
    if (!buddy.element.isConnected) fill(life, buddy.element);
    buddy.update(twin);
  }

  const back = (twin) =>
    actionButton(
      "Bring back",
      () => attemptIn(errorPlace, () => bringBack({ hash: key, name: twin.name }, list.refresh)),
    );

  const soulPart = (twin) =>
    part(
      "Soul",
      h(
        "p",
        { class: "soul", tabindex: 0, role: "region", "aria-label": `${twin.name}'s soul` },
        twin.soul || "It has none yet.",
      ),
      twin.state !== "archived" &&
        actionButton("Edit soul", () => attemptIn(errorPlace, () => openSoul(twin, list.refresh)), "quiet"),
    );

  function agentsPart(twin, files, held) {
    const cards = files.flatMap((file) => (file.cards ?? []).map((card) => ({ file, card })));
    const own = cards.filter(({ card }) => card.origin !== "shipped");
    const others = cards.length - own.length;
    return part(
      "Agents",
      [
        h(
          "ul",
          { class: "cards" },
          own.map(({ file, card }) => agentCard(file, card, { tryIt, key })),
        ),
        quarantinedList(held, key),
        others > 0 &&
          h(
            "p",
            { class: "soft also" },
            `${own.length ? "And" : "None of its own yet;"} ${count(others, "built-in agent")}.`,
          ),
        ["services", "organs", "senses"].map(
          (kind) =>
            twin[kind]?.length > 0 &&
            h(
              "p",
              { class: "soft also" },
              `${kind[0].toUpperCase()}${kind.slice(1)}: ${twin[kind].join(", ")}`,
            ),
        ),
      ],
      twin.state !== "archived" &&
        h("div", { class: "controls" }, newAgentButton(key), chooseFile("Add a file", tryIt, key)),
    );
  }

  const memoryPart = ({ name }) =>
    part(
      "Memory",
      h(
        "p",
        { class: "soft also" },
        h(
          "a",
          { href: `#/agents/memory/${encodeURIComponent(key)}` },
          `See and correct what ${name} remembers`,
        ),
      ),
    );

  const lineagePart = ({ element }) => part("Lineage", element);

  const changed = () => {
    const row = twins.row(key);
    if (row?.buddy && buddy) buddy.update(row);
    const text = JSON.stringify({ ...row, buddy: null });
    if (text !== known) list.refresh();
    known = text;
  };
  let known = "";
  twins.addEventListener("change", changed);
  agentsChanged.addEventListener("change", list.refresh);
  return {
    close() {
      twins.removeEventListener("change", changed);
      agentsChanged.removeEventListener("change", list.refresh);
      family?.close();
      kept?.close();
      egg.close();
      list.close();
    },
  };
}

const part = (title, content, control = null) =>
  h("section", { class: "group" }, h("div", { class: "group-head" }, h("h2", {}, title), control), content);

function aboutPart({ rappid, born_at: born, parent_rappid: parent, incarnations, path }) {
  const rows = [
    ["Rappid", h("code", {}, rappid)],
    ["Born", `${onDay(born)}${incarnations ? `, ${count(incarnations, "upgrade")} since` : ""}`],
    ["Parent", parent && h("code", {}, parent)],
    ["Folder", h("code", {}, path)],
  ];
  return part(
    "About",
    h(
      "dl",
      { class: "about" },
      rows
        .filter(([, value]) => value)
        .map(([what, value]) => h("div", {}, h("dt", {}, what), h("dd", {}, value))),
    ),
  );
}
