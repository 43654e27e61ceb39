/** After a hatching: a notice with undo. */

import { Problem } from "../../lib/api.js";
import { count } from "../../lib/format.js";
import { actionButton, h, withCode } from "../../lib/dom.js";
import { agentsChanged } from "../agents/agent-import.js";
import { attemptIn } from "../ui/problem.js";
import * as operations from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { openDialog } from "../ui/dialog.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";
import { twins } from "../twins/twins-state.js";

const SECONDS = 20; // there is something to choose, and nowhere else a way from here to the code that waits

/** Told `change` when something was hatched or undone. */
export const hatchings = new EventTarget();

/** Tells of a hatching, `hatched` as the daemon answers it. */
export function hatched({ name, key, destination, receipt, create, replace, quarantine, answer, released }) {
  changed();
  if (!receipt) {
    const freed = released?.length ? `${count(released.length, "code file")} may run now.` : "";
    toast(answer || `${name} is here already. ${freed}`);
    return;
  }
  const files = count(create.count + replace.count + quarantine.count, "file");
  const held = quarantine.count;
  const what = quarantine.roles?.env ? "file" : "code file";
  const waits = held ? ` ${count(held, what)} ${held === 1 ? "waits" : "wait"} for your approval.` : "";
  const read = {
    label: "Read",
    run: () => (destination === "twin" ? go("twins", "twin", key) : go("agents")),
  };
  toast(`${name} hatched: ${files}.${waits}`, {
    actions: [...(held ? [read] : []), { label: "Undo", run: () => undoHatching(receipt, name) }],
    seconds: SECONDS,
  });
}

/** Takes a hatching back. What changed since is put aside, if the operator says so. */
export function undoHatching(receipt, name) {
  return orShowFailure(async () => {
    try {
      await rollBack(receipt, name, false);
    } catch (found) {
      if (!(found instanceof Problem) || found.code !== "changed_since") throw found;
      openChanged(receipt, name, found.message);
    }
  });
}

async function rollBack(receipt, name, evenIfChanged) {
  const { rolled_back: done } = await operations.eggs.rollback({ receipt, even_if_changed: evenIfChanged });
  changed();
  const aside = done.aside ? ` What had changed lies in \`${done.aside}\`.` : "";
  toast(done.already ? `${name} was taken back before.` : `${name} is as it was before.${aside}`);
}

function openChanged(receipt, name, why) {
  const errorPlace = h("div", {});
  openDialog({
    title: `Undo the hatching of ${name}?`,
    build: (close) => {
      const undo = async () => (await attemptIn(errorPlace, () => rollBack(receipt, name, true))) && close();
      return h(
        "div",
        { class: "dialog-body" },
        h("p", {}, h("span", { class: "sign warn" }, "! "), withCode(why)),
        h("p", {}, "Undone all the same, what changed is put aside; none of it is lost."),
        errorPlace,
        h(
          "div",
          { class: "dialog-actions" },
          actionButton("Leave it hatched", close),
          actionButton("Undo all the same", undo),
        ),
      );
    },
  });
}

function changed() {
  twins.touch();
  agentsChanged.dispatchEvent(new Event("change"));
  hatchings.dispatchEvent(new Event("change"));
}
