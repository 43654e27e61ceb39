/** Twins › Eggs: those that are here, what was hatched, whose eggs are trusted, and two eggs side by side. */

import { attemptIn } from "../ui/problem.js";
import { staleList } from "../ui/stale-list.js";
import { bytes, clock, count, onDay } from "../../lib/format.js";
import { canSend, openSending } from "../outbox/egg-sending.js";
import { chooseEgg, openEggs } from "./egg-import.js";
import { eggDiff } from "./egg-diff.js";
import { actionButton, breakable, fill, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { kindOf } from "./egg-kinds.js";
import { hatchings, undoHatching } from "./hatch-notice.js";
import { saveLaid } from "./packed-egg.js";
import { signersList } from "./signers.js";

/** Fills `place`. `drops(target)` says what a drop there does; `close()` when done. */
export function eggsView(place) {
  const packed = h("div", {});
  const here = h("div", {});
  const signers = h("div", {});
  const compare = eggDiff();
  fill(
    place,
    group("Packed here", packed, chooseEgg("Open an egg")),
    group("Hatched here", here),
    group("Senders you trust", signers),
    group("Compare two eggs", compare.element),
  );
  const lists = [
    staleList(here, {
      name: "hatchings",
      load: async () => (await operations.eggs.hatchings()).hatchings ?? [],
      draw: rowsOf(hatchingRow, "Nothing was hatched yet. Drop an egg anywhere here."),
    }),
    signersList(signers),
    staleList(packed, {
      name: "packed-eggs",
      load: async () => (await operations.eggs.laid()).eggs ?? [],
      draw: rowsOf(packedRow, "No egg was packed here yet. “Pack” on a twin's card makes one."),
    }),
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

function packedRow({ file, path, size, at }) {
  const errorPlace = h("div", {});
  const button = (label, onclick) =>
    actionButton(label, onclick, "quiet", { "aria-label": `${label} ${file}` });
  return h(
    "li",
    { class: "line-row" },
    h(
      "div",
      {},
      h("p", {}, breakable(file)),
      h("p", { class: "soft" }, `${bytes(size)}, packed ${onDay(at)} ${clock(at)}`),
      errorPlace,
    ),
    h(
      "div",
      { class: "row-actions" },
      button("Save", () => attemptIn(errorPlace, () => saveLaid(path, file))),
      canSend() && button("Send", () => openSending(file, () => path, { asItIs: true })),
    ),
  );
}

function hatchingRow({ id, name, kind, hatched_at: at, files, rolled_back_at: back }) {
  return h(
    "li",
    { class: "line-row" },
    h(
      "div",
      {},
      h("p", {}, breakable(name)),
      h(
        "p",
        { class: "soft" },
        `${kindOf(kind)}, ${count(files, "file")}, ${onDay(at)} ${clock(at)}`,
        back && `; taken back ${onDay(back)} ${clock(back)}`,
      ),
    ),
    !back &&
      actionButton(
        "Undo",
        () => undoHatching(id, name),
        "quiet",
        { "aria-label": `Undo the hatching of ${name}` },
      ),
  );
}

/** Draws a list by `row`, or the sentence for an empty one. */
const rowsOf = (row, none) => (all) =>
  all.length ? h("ul", { class: "rows" }, all.map(row)) : h("p", { class: "soft" }, none);
