/** Sending an egg to a paired machine, where it waits for its owner. */

import { h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { stripControl } from "../../lib/format.js";
import { machines } from "../machines/machines-state.js";
import { field, formDialog } from "../ui/form-dialog.js";
import { toast } from "../ui/toast.js";

/** The paired machines, under names that tell them apart. */
function receivers() {
  const names = machines.paired.map(({ name }) => stripControl(name));
  return machines.paired.map((row, at) => ({
    fingerprint: row.fingerprint,
    label: names.filter((name) => name === names[at]).length > 1 ? `${names[at]} (${row.short})` : names[at],
  }));
}

/** True while there is a machine that an egg can be sent to. */
export const canSend = () => machines.paired.length > 0;

/** Asks where `name` goes and sends it; `pathFor()` gives the egg's path, packed only then unless it goes `asItIs`. */
export function openSending(name, pathFor, { asItIs = false } = {}) {
  const all = receivers();
  const to = field("To", { tag: "select", options: all.map(({ label }) => label) });
  formDialog({
    title: `Send ${name}`,
    verb: "Send",
    fields: [to],
    after: h(
      "p",
      { class: "soft" },
      `It is ${asItIs ? "" : "packed as it is now and "}sealed: only that machine can open it. There it waits for approval.`,
    ),
    run: async () => {
      const peer = all[to.input.selectedIndex].fingerprint;
      const { sent } = await operations.eggs.send({ path: await pathFor(), peer });
      toast(told(sent));
    },
  });
}

/** The outcome of a sending, as a sentence. */
export function told({ state, name, peer, why = "" }) {
  const where = stripControl(peer);
  if (state === "done") return `Sent. ${stripControl(name)} waits for approval on ${where}.`;
  const reason = stripControl(why).replace(/\.$/, "");
  return `${stripControl(name)} waits for ${where}${reason && `: ${reason}`}. It goes by itself.`;
}
