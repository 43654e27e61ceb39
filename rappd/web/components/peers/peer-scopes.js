/** Permissions of a peer: all approved agents, only eggs, or the selected agents. */

import { daemon } from "../../lib/daemon-state.js";
import { h } from "../../lib/dom.js";
import { peers } from "../../lib/operations.js";
import { stripControl } from "../../lib/format.js";
import { nameOf } from "../machines/machine-words.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

const ALL = "*";
const EGGS = "EGG";
const SNAPSHOTS = "SNAPSHOT";
const TURN = "HELP.brainstem";

let count = 0;

/** The choice for `peer`, with this machine's agents as `cards`; `saved(peer)` is told what came of it. */
export function peerScopes(peer, cards, saved) {
  const group = `scopes-${++count}`;
  const errorPlace = h("div", {});
  const save = h("button", { type: "button", class: "secondary", disabled: true }, "Save");
  const before = peer.scopes;
  const radios = ["all", "eggs", "some"].map((value) => h("input", { type: "radio", name: group, value }));
  const [all, eggs, some] = radios;
  const offered = choices(cards, before);
  const boxes = offered.map(({ scope }) => {
    const box = h("input", { type: "checkbox", value: scope });
    box.checked = before.includes(scope);
    return box;
  });
  const ticks = h(
    "fieldset",
    { class: "ticks" },
    h("legend", { class: "visually-hidden" }, `What ${nameOf(peer)} may do here`),
    offered.map(({ title, meaning }, at) => line(boxes[at], title, meaning)),
  );
  (before.includes(ALL) ? all : before.length === 1 && before[0] === EGGS ? eggs : some).checked = true;

  const chosen = () => {
    if (all.checked) return [ALL];
    if (eggs.checked) return [EGGS];
    return boxes.filter(({ checked }) => checked).map(({ value }) => value);
  };
  const same = () => JSON.stringify([...chosen()].sort()) === JSON.stringify([...before].sort());
  const changed = () => {
    ticks.hidden = !some.checked;
    save.disabled = same();
  };
  const element = h(
    "div",
    { class: "scopes" },
    h(
      "fieldset",
      { class: "whose" },
      h("legend", { class: "visually-hidden" }, `How much ${nameOf(peer)} may do here`),
      line(all, "Everything approved", "As a machine of yours: every agent that you approved here, and snapshots of this machine."),
      line(eggs, "Eggs alone", "As a friend's: it may send you eggs, which wait until you open them."),
      line(some, "What is ticked", "Nothing else."),
    ),
    ticks,
    errorPlace,
    h("div", { class: "scopes-foot" }, save),
  );
  element.addEventListener("change", changed);
  changed();
  save.addEventListener("click", () =>
    attemptIn(errorPlace, async () => {
      saved(await put(peer, chosen()));
      const undo = () => attemptIn(errorPlace, async () => saved(await put(peer, before)));
      toast(`Saved: ${mayHere(chosen(), nameOf(peer))}`, { actions: [{ label: "Undo", run: undo }] });
    }),
  );
  return element;
}

/** "pi may use everything approved here." */
function mayHere(scopes, name) {
  if (scopes.includes(ALL)) return `${name} may use everything approved here.`;
  if (!scopes.length) return `${name} may do nothing here.`;
  if (scopes.length === 1 && scopes[0] === EGGS) return `${name} may send eggs, nothing else.`;
  return `${name} may do ${scopes.length} ${scopes.length === 1 ? "thing" : "things"} here.`;
}

async function put(peer, scopes) {
  return (await peers.scopes({ peer: peer.fingerprint, scopes })).peer;
}

/** Eggs, talking, each agent that is not its owner's alone, and whatever else the peer has been given by hand. */
function choices(cards, given) {
  const agents = cards
    .filter((card) => card.name && !card.quarantined && !card.shadowed_by && !card.structural)
    .map((card) => ({
      scope: `${TURN}.${card.tool_name || card.name}`,
      title: card.name,
      meaning: sentence(card.description),
    }));
  const known = [
    { scope: EGGS, title: "Send eggs", meaning: "They wait until you open them." },
    { scope: SNAPSHOTS, title: "Take snapshots", meaning: "It reads everything that lives here, without keys." },
    { scope: TURN, title: `Chat with ${daemon.name}`, meaning: "Its turns use the agents that are ticked." },
    ...agents,
  ];
  const others = given.filter((scope) => scope !== ALL && !known.some((one) => one.scope === scope));
  return [...known, ...others.map((scope) => ({ scope, title: h("code", {}, scope), meaning: "" }))];
}

const line = (input, title, meaning) =>
  h(
    "label",
    { class: "choice-line" },
    input,
    h("span", {}, h("span", {}, title), meaning && h("span", { class: "soft" }, meaning)),
  );

const sentence = (text) =>
  stripControl(text)
    .split(/(?<=[.!?])\s/, 1)[0]
    .slice(0, 160);
