/** Calls to other machines without an answer yet, shown above Activity's list. */

import { h } from "../../lib/dom.js";
import { listen } from "../../lib/dom.js";
import { keyedList } from "../ui/keyed-list.js";
import { machines } from "../machines/machines-state.js";
import { outboxRow } from "./outbox-row.js";
import { outbox } from "./outbox-state.js";
import { peerCallRow } from "../peers/call-row.js";
import { peerCalls } from "../peers/calls-state.js";

/** Fills `place`, which stays empty while there are none; `close()` when done. */
export function callsInProgress(place) {
  const asked = keyedList("ul", "in-progress", ({ id }) => id, peerCallRow);
  const waiting = keyedList("ul", "in-progress", ({ id }) => id, briefRow);
  const part = h(
    "section",
    { class: "in-progress-part" },
    h("h2", {}, "Under way"),
    asked.element,
    waiting.element,
  );
  place.replaceChildren(part);

  const draw = () => {
    const calls = peerCalls.underWay;
    part.hidden = calls.length + outbox.waiting.length === 0;
    asked.show(calls);
    waiting.show(outbox.waiting);
  };
  const ends = [
    outbox.show(),
    listen("change", [outbox, machines, peerCalls], draw),
    asked.close,
    waiting.close,
  ];
  draw();
  return { close: () => ends.forEach((end) => end()) };
}

const briefRow = (row) => outboxRow(row, { brief: true });
