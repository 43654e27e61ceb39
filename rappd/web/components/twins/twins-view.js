/** Twins › Here: a card for each twin that lives on this machine. */

import { staleList } from "../ui/stale-list.js";
import { chooseEgg } from "../eggs/egg-import.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { twinCard } from "./twin-card.js";
import { openNewTwin } from "./twin-dialogs.js";
import { twins } from "./twins-state.js";

const TICK_MS = 30_000;
const MANY = 9; // from so many on one may look for a name

/** Fills `place`; `close()` when done. */
export function twinsView(place) {
  const controls = h("div", { class: "twin-controls" });
  const body = h("div", {});
  const cards = new Map(); // key → card, kept over redrawings: what was begun on one goes on
  const sought = h("input", {
    type: "search",
    id: "find-twin",
    placeholder: "Find a twin",
    "aria-label": "Find a twin",
  });
  const hits = h("p", { class: "soft", role: "status" });
  fill(place, controls, body);

  const list = staleList(body, {
    name: "twins",
    load: async () => {
      const { rows, unreadable } = await twins.list();
      return { rows, unreadable };
    },
    draw: ({ rows, unreadable }) => {
      drawControls(rows.length);
      forget(rows);
      return [rows.length ? cardList(rows) : empty(), unreadable.map(unreadableRow)];
    },
  });

  /** Drawn only when they change: one may be typing there. */
  function drawControls(number) {
    const now = `${number > 0} ${number >= MANY}`;
    if (controls.dataset.drawn === now) return;
    controls.dataset.drawn = now;
    fill(controls, number > 0 && [newTwin("secondary"), chooseEgg("Open an egg")], number >= MANY && sought);
  }

  function cardList(rows) {
    for (const row of rows) {
      if (cards.has(row.key)) cards.get(row.key).update(row);
      else cards.set(row.key, twinCard(row));
    }
    const element = h("ul", { class: "cards" }, rows.map(({ key }) => cards.get(key).element));
    find();
    return [h("h2", { class: "visually-hidden" }, "Twins here"), hits, element];
  }

  function find() {
    const wanted = sought.isConnected ? sought.value.trim().toLowerCase() : "";
    let shown = 0;
    for (const { key, name, kind } of twins.rows) {
      const fits = `${name} ${kind}`.toLowerCase().includes(wanted);
      if (cards.has(key)) cards.get(key).element.hidden = !fits;
      shown += fits;
    }
    fill(hits, wanted && `${shown} of ${twins.rows.length}`);
  }

  function forget(rows) {
    const living = new Set(rows.map(({ key }) => key));
    for (const [key, card] of cards) {
      if (living.has(key)) continue;
      card.close();
      cards.delete(key);
    }
  }

  const tick = () => twins.rows.forEach((row) => cards.get(row.key)?.update(row));
  const ticking = setInterval(tick, TICK_MS);
  sought.addEventListener("input", find);
  twins.addEventListener("change", list.refresh);
  return {
    close() {
      clearInterval(ticking);
      twins.removeEventListener("change", list.refresh);
      for (const card of cards.values()) card.close();
      list.close();
    },
  };
}

const newTwin = (kind) => actionButton("New twin", openNewTwin, kind);

function empty() {
  return h(
    "div",
    { class: "no-twins" },
    h("p", { class: "greeting" }, "No twin lives here yet."),
    h(
      "p",
      { class: "soft" },
      "A twin has a soul, a memory and agents of its own. An egg holds one that was packed; drop it anywhere here.",
    ),
    h("div", { class: "twin-controls" }, newTwin("primary"), chooseEgg("Open an egg")),
  );
}

const unreadableRow = ({ folder, problem }) =>
  h(
    "p",
    { class: "unreadable" },
    h("span", { class: "sign warn" }, "! "),
    `${folder} cannot be read: ${problem}`,
  );
