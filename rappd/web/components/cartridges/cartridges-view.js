/** Twins › Cartridges: the one that is open, or those that could be. */

import { cartridges } from "../../lib/operations.js";
import { staleList } from "../ui/stale-list.js";
import { bytes, clock, onDay } from "../../lib/format.js";
import { cartridgePanel } from "./cartridge-panel.js";
import { allKept, forget, opened, openFiles, openHere, openKept } from "./cartridge-opening.js";
import { runs } from "./cartridge-words.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, withCode } from "../../lib/dom.js";
import { chooseEgg } from "../eggs/egg-import.js";
import { attemptIn } from "../ui/problem.js";

/** Fills `place`. `drops()` says what a drop there does; `close()` when done. */
export function cartridgesView(place) {
  let shown = null;
  const errorPlace = h("div", {});
  const body = h("div", {});
  fill(place, errorPlace, body);

  const take = (files) => files.length > 0 && attemptIn(errorPlace, () => openFiles(files));
  const draw = () => {
    shown?.close();
    const arrived = shown !== null;
    fill(errorPlace);
    shown = opened.current
      ? cartridgePanel(body, opened.current, leave)
      : cartridgeList(body, errorPlace, take);
    if (arrived) body.querySelector("h2")?.focus({ preventScroll: true });
  };
  const leave = () => opened.take(null, "");
  opened.addEventListener("change", draw);
  draw();
  return {
    drops: () => ({ words: "Drop to open the cartridge", take }),
    close() {
      opened.removeEventListener("change", draw);
      shown.close();
    },
  };
}

/** The list of cartridges that can be opened. */
function cartridgeList(place, errorPlace, take) {
  const left = h("div", {});
  const here = h("div", {});
  const drawLeft = () => {
    const all = allKept();
    fill(left, all.length > 0 && group("Kept in this browser", h("ul", { class: "rows" }, all.map(keptRow))));
  };
  const keptRow = ({ place: where, name, at }) =>
    row(
      name,
      `left ${onDay(at)} ${clock(at)}`,
      action("Go on", `Go on with ${name}`, () => attemptIn(errorPlace, async () => openKept(where))),
      action("Forget", `Forget ${name}`, () => {
        forget(where);
        drawLeft();
      }),
    );
  drawLeft();
  fill(
    place,
    h(
      "div",
      { class: "cartridge-open" },
      h("h2", { class: "visually-hidden", tabindex: -1 }, "Cartridges"),
      h(
        "p",
        {},
        "A cartridge is a small program in one file. It runs here in the page and reaches nothing outside; ",
        "it can be paused anywhere, and goes on wherever you open it.",
      ),
      chooseEgg("Open a cartridge", { taken: take }),
      h("p", { class: "soft" }, "Or drop it here; with its .sig file, if it has one."),
    ),
    h("div", { class: "cartridge-lists" }, left, daemon.operator && group("On this machine", here)),
  );
  if (!daemon.operator) return { close: () => undefined };
  const list = staleList(here, {
    name: "cartridges",
    load: async () => (await cartridges.list()).cartridges ?? [],
    draw: (all) =>
      all.length
        ? h("ul", { class: "rows" }, all.map((one) => hereRow(one, errorPlace)))
        : h(
            "p",
            { class: "soft" },
            withCode("There are none among your agents or your twins'. `rappd cartridge new` makes one."),
          ),
  });
  return list;
}

function hereRow({ name, description, size, frame, frozen, problem, file, twin, of }, errorPlace) {
  const whose = of && `of ${of}`;
  if (problem)
    return h(
      "li",
      { class: "line-row" },
      h("p", {}, h("span", { class: "sign warn" }, "! "), withCode(of ? `${of}: ${problem}` : problem)),
    );
  const about = [whose, description, frozen ? "paused" : runs(frame), bytes(size)].filter(Boolean).join(", ");
  return row(
    name,
    about,
    action("Open", ["Open", name, whose].filter(Boolean).join(" "), () =>
      attemptIn(errorPlace, () => openHere(file, twin)),
    ),
  );
}

const row = (title, about, ...actions) =>
  h(
    "li",
    { class: "line-row" },
    h("div", {}, h("p", {}, title), h("p", { class: "soft" }, about)),
    h("div", { class: "card-actions" }, actions),
  );

const action = (label, whole, onclick) =>
  actionButton(label, onclick, "quiet", { "aria-label": whole });

const group = (title, content) =>
  h("section", { class: "group" }, h("div", { class: "group-head" }, h("h2", {}, title)), content);
