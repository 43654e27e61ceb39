/** Machines › Outbox: requests that wait for machines that are away, then recent results. */

import { staleList } from "../ui/stale-list.js";
import { h } from "../../lib/dom.js";
import { listen } from "../../lib/dom.js";
import { keyedList } from "../ui/keyed-list.js";
import { machines } from "../machines/machines-state.js";
import { outboxRow } from "./outbox-row.js";
import { outbox } from "./outbox-state.js";
import { isWaiting } from "./call-words.js";

const LOOK_MS = 3000;
const RECENT = 86_400;

/** Fills `place`; `close()` when done. */
export function outboxView(place) {
  const waiting = keyedList("ul", "cards", ({ id }) => id, outboxRow);
  const over = keyedList("ul", "cards", ({ id }) => id, outboxRow);
  const none = h(
    "p",
    { class: "plain" },
    "Nothing waits for another machine. What you ask of one that is away, or send to it, waits here.",
  );
  const later = h("h2", { class: "lately" }, "Lately");
  const body = h("div", {}, none, waiting.element, later, over.element);

  const draw = () => {
    const since = Date.now() / 1000 - RECENT;
    const ended = outbox.rows.filter((row) => !isWaiting(row) && row.created > since);
    none.hidden = outbox.waiting.length > 0;
    later.hidden = ended.length === 0;
    waiting.show(outbox.waiting);
    over.show(ended);
  };
  const list = staleList(place, {
    name: "outbox",
    load: async () => {
      await Promise.all([outbox.look(), machines.list()]);
      return { known: true };
    },
    draw: () => (draw(), body),
  });
  const timer = setInterval(() => document.hidden || list.refresh(), LOOK_MS);
  const ends = [
    outbox.show(),
    listen("change", [outbox, machines], draw),
    waiting.close,
    over.close,
    list.close,
  ];
  return {
    close() {
      clearInterval(timer);
      for (const end of ends) end();
    },
  };
}
