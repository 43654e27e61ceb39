/** One twin in the list: who it is, how it is, and what can be done with it. */

import { Problem } from "../../lib/api.js";
import { buddyLine } from "../cartridges/buddy.js";
import { actionButton, breakable, fill, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { menuButton } from "../ui/menu.js";
import { canSend, openSending } from "../outbox/egg-sending.js";
import { dragsOut, eggLine, eggOf } from "../eggs/packed-egg.js";
import { attemptIn } from "../ui/problem.js";
import { openSoul } from "./soul-dialog.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";
import { facts, pageOf, state, chatLink } from "./twin-words.js";
import { openFork, openRename } from "./twin-dialogs.js";
import { twins } from "./twins-state.js";

/** The card of a row. `update(row)` when there is a newer one, `close()` when it goes. */
export function twinCard(row) {
  const title = h("h3", {});
  const now = h("p", {});
  const soft = h("p", { class: "soft" });
  const actions = h("div", { class: "card-actions" });
  const errorPlace = h("div", {});
  const egg = eggLine(row.key);
  const buddy = row.buddy && buddyLine(row);
  const element = h(
    "li",
    { class: "card twin", "data-key": row.key },
    h("div", { class: "card-words" }, title, now, soft),
    actions,
    buddy?.element,
    egg.element,
    errorPlace,
  );
  let drawn = "";
  const update = (newer) => {
    row = newer;
    fill(soft, facts(row));
    buddy?.update(row);
    const called = twins.toldApart(row.key) ?? row.name;
    const text = `${called}\n${row.state}\n${row.port}`;
    if (text === drawn) return; // what has the keyboard stays
    drawn = text;
    fill(title, h("a", { href: pageOf(row.key), draggable: "false" }, breakable(called)));
    fill(now, state(row));
    fill(actions, twinActions(() => row, errorPlace));
  };
  update(row);
  dragsOut(element, () => row);
  return { element, update, close: egg.close };
}

/** Chat, Pack and the rest, for the twin that `row()` gives; what goes wrong is told in `errorPlace`. */
export function twinActions(row, errorPlace) {
  const { key } = row();
  const name = twins.toldApart(key) ?? row().name;
  return [
    h(
      "a",
      {
        class: "button secondary",
        href: chatLink(key),
        "aria-label": `Chat with ${name}`,
        draggable: "false",
      },
      "Chat",
    ),
    actionButton("Pack", () => eggOf(key).pack(row()), "quiet", { "aria-label": `Pack ${name}` }),
    menuButton("More", `More for ${name}`, () => menu(row(), errorPlace)),
  ];
}

function menu(row, errorPlace) {
  const does = (verb) => () =>
    attemptIn(errorPlace, async () => {
      toast((await operations.twins[verb]({ twin: row.key })).message);
      twins.touch();
    });
  return [
    { label: "Rename", run: () => openRename(row) },
    { label: "Soul", run: () => attemptIn(errorPlace, () => openSoul(row)) },
    { label: "Fork", run: () => openFork(row) },
    canSend() && { label: "Send", run: () => openSending(row.name, () => packedPath(row)) },
    row.state === "awake"
      ? { label: "Stop", run: does("stop") }
      : { label: "Let programs reach it (own port)", run: does("boot") },
    null,
    { label: "Archive", run: () => attemptIn(errorPlace, () => archive(row)) },
  ].filter((item) => item !== false);
}

/** The path of an egg of the twin as it is now. Raises `Problem`, as where likely secrets would travel. */
async function packedPath(row) {
  const egg = eggOf(row.key);
  if (!egg.isFresh(row)) await egg.pack(row);
  if (egg.state === "ready") return egg.packed.path;
  if (egg.problem) throw egg.problem;
  throw new Problem({ error: "It is not packed yet; nothing was sent.", do: "Send it once it is packed." });
}

/** Archives a twin; undo restores its state. */
async function archive({ key, name, state: was }) {
  await operations.twins.archive({ twin: key });
  eggOf(key).forget();
  twins.touch();
  const undo = async () => {
    await operations.twins.unarchive({ twin: key });
    if (was === "awake") await operations.twins.boot({ twin: key });
    twins.touch();
  };
  toast(`${name} is archived.`, { actions: [{ label: "Undo", run: () => orShowFailure(undo) }] });
}
