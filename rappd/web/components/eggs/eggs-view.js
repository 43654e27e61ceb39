/** Twins › Eggs: what was hatched here, two eggs side by side, and whose eggs are trusted. */

import { get } from "../../lib/api.js";
import { staleList } from "../ui/stale-list.js";
import { clock, count, onDay } from "../../lib/format.js";
import { chooseEgg, openEggs } from "./egg-import.js";
import { eggDiff } from "./egg-diff.js";
import { fill, h } from "../../lib/dom.js";
import { kindOf } from "./labels.js";
import { hatchings, undoHatching } from "./hatch-notice.js";
import { signersList } from "./signers.js";

/** Fills `place`. `drops(target)` says what a drop there does; `close()` when done. */
export function eggsView(place) {
  const here = h("div", {});
  const signers = h("div", {});
  const compare = eggDiff();
  fill(
    place,
    group("Compare two eggs", compare.element),
    group("Hatched here", here, chooseEgg("Open an egg")),
    group("Trusted signers", signers),
  );
  const lists = [
    staleList(here, {
      name: "hatchings",
      load: async () => (await get("/eggs/hatchings")).hatchings ?? [],
      draw: (all) =>
        all.length
          ? h("ul", { class: "rows" }, all.map(hatchingRow))
          : h("p", { class: "soft" }, "Nothing was hatched yet. Drop an egg anywhere here."),
    }),
    signersList(signers),
  ];
  hatchings.addEventListener("change", lists[0].refresh);
  return {
    drops: (target) => compare.drops(target) ?? { words: "Drop to open the egg", take: openEggs },
    close() {
      hatchings.removeEventListener("change", lists[0].refresh);
      for (const list of lists) list.close();
      compare.close();
    },
  };
}

const group = (title, content, control = null) =>
  h("section", { class: "group" }, h("div", { class: "group-head" }, h("h2", {}, title), control), content);

function hatchingRow({ id, name, kind, hatched_at: at, files, rolled_back_at: back }) {
  return h(
    "li",
    { class: "line-row" },
    h(
      "div",
      {},
      h("p", {}, name),
      h(
        "p",
        { class: "soft" },
        `${kindOf(kind)}, ${count(files, "file")}, ${onDay(at)} ${clock(at)}`,
        back && `; taken back ${onDay(back)} ${clock(back)}`,
      ),
    ),
    !back &&
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": `Undo the hatching of ${name}`,
          onclick: () => undoHatching(id, name),
        },
        "Undo",
      ),
  );
}
