/** One machine in the list: who it is, whether it is here, and what can be done with it. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { pairings, peers } from "../../lib/operations.js";
import { openAsk } from "../peers/peer-ask.js";
import { openPairing } from "../pairing/pairing-dialog.js";
import { attemptIn } from "../ui/problem.js";
import {
  facts,
  hostOf,
  isDistrusted,
  nameOf,
  named,
  pageOf,
  presence,
  selectorOf,
  short,
  troubleOf,
  wayOut,
} from "./machine-words.js";
import { machines } from "./machines-state.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";

/** The card of a row of `machines.rows`. `update(row)` when there is a newer one. */
export function machineCard(row) {
  const title = h("h3", {});
  const now = h("p", {});
  const wrong = h("p", {});
  const soft = h("p", { class: "soft" });
  const actions = h("div", { class: "card-actions" });
  const errorPlace = h("div", {});
  const element = h(
    "li",
    { class: "card machine", "data-key": selectorOf(row) },
    h("div", { class: "card-words" }, title, now, wrong, soft),
    actions,
    errorPlace,
  );
  let drawn = "";
  let told = "";
  const update = (newer) => {
    row = newer;
    const reading = presence(row);
    const state = JSON.stringify([
      reading[1],
      row.reached,
      row.agents,
      row.waiting,
      row.trouble,
    ]);
    if (state !== told) {
      told = state;
      const away = troubleOf(row);
      fill(now, reading);
      fill(wrong, away && [h("span", { class: "sign bad" }, "✗ "), away, " ", wayOut(row)]);
      fill(soft, facts(row));
    }
    const distrusted = isDistrusted(row);
    const text = JSON.stringify([row.name, row.paired, row.legacy, row.presence === "found", distrusted]);
    if (text === drawn) return; // what has the keyboard stays
    drawn = text;
    fill(title, row.paired ? h("a", { href: pageOf(row) }, named(row)) : named(row), " ", short(row));
    fill(actions, controls(() => row, errorPlace));
  };
  update(row);
  return { element, update, close: () => undefined };
}

/** A machine that wants to pair; always on top. */
export function askingCard(attempt) {
  const words = h("p", {});
  const errorPlace = h("div", {});
  const look = h("button", { type: "button", class: "primary" });
  const actions = h("div", { class: "card-actions" }, look);
  const element = h(
    "li",
    { class: "card machine asks", "data-attempt": attempt.attempt },
    h("div", { class: "card-words" }, words),
    actions,
    errorPlace,
  );
  const refuse = actionButton("Decline", () => attemptIn(errorPlace, notNow), "quiet");
  async function notNow() {
    await pairings.stop({ attempt: attempt.attempt });
    toast(`${nameOf(attempt)} was told no; nothing was paired.`);
    machines.touch();
  }
  look.addEventListener("click", () => openPairing(attempt));
  actions.append(refuse);
  let drawn = "";
  const update = (newer) => {
    attempt = newer;
    const said = attempt.state === "waiting";
    const text = JSON.stringify([attempt.peer, attempt.address, said]);
    if (text === drawn) return;
    drawn = text;
    fill(
      words,
      said
        ? ["Waiting for the yes on ", named(attempt), "."]
        : [named(attempt), ` (${hostOf(attempt)}) wants to pair.`],
    );
    fill(look, said ? "Look" : "Pair");
    for (const [button, verb] of [
      [look, said ? "Look at the pairing with" : "Pair with"],
      [refuse, "Decline"],
    ])
      button.setAttribute("aria-label", `${verb} ${nameOf(attempt)}`);
  };
  update(attempt);
  return { element, update, close: () => undefined };
}

function controls(row, errorPlace) {
  const name = nameOf(row());
  const button = (text, label, kind, run) =>
    actionButton(text, run, kind, { "aria-label": label });
  if (row().paired || row().legacy)
    return [
      button("Ask", `Ask ${name}`, "secondary", () => openAsk(row())),
      isDistrusted(row()) &&
        button("Pair anew", `Pair anew with ${name}`, "secondary", () =>
          attemptIn(errorPlace, () => pairWith(row())),
        ),
      row().legacy && forgetting(row, name, errorPlace, button),
    ];
  return [
    button("Pair", `Pair with ${name}`, "secondary", () => attemptIn(errorPlace, () => pairWith(row()))),
    row().presence !== "found" && forgetting(row, name, errorPlace, button),
  ];
}

async function pairWith(row) {
  const { pairing } = await pairings.begin({ peer: selectorOf(row) });
  openPairing(pairing);
}

const forgetting = (row, name, errorPlace, button) =>
  button("Forget", `Forget ${name}`, "quiet", () => attemptIn(errorPlace, () => forget(row().address, name)));

/** Takes a written-down address out; undone, it is written down again. */
async function forget(address, name) {
  await peers.forget({ address });
  machines.touch();
  const back = async () => {
    await peers.add({ address });
    machines.touch();
  };
  toast(`${name} is forgotten.`, {
    actions: [{ label: "Undo", run: () => orShowFailure(back) }],
  });
}
