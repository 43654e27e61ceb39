/** Dialogs about other machines: an address is added, a peer renamed, the trust in one ended. */

import { formDialog, field } from "../ui/form-dialog.js";
import { h } from "../../lib/dom.js";
import { peers } from "../../lib/operations.js";
import { nameOf, named } from "./machine-words.js";
import { machines } from "./machines-state.js";
import { toast } from "../ui/toast.js";
import { orShowFailure } from "../agents/failed-files.js";

/** Writes an address down, and says who answers there. */
export function openAddAddress() {
  const address = field("Address", {
    placeholder: "192.168.1.31 or shed.local:7443",
    required: true,
    maxlength: 300,
    autocapitalize: "none",
    inputmode: "url",
    help: "Of a machine that is not found by itself. http://… is a published brainstem, …/agent-card.json an A2A agent.",
  });
  formDialog({
    title: "Add by address",
    verb: "Add it",
    fields: [address],
    run: async () => {
      const { added } = await peers.add({ address: address.input.value.trim() });
      machines.touch();
      const undo = async () => {
        await peers.forget({ address: added.legacy ? added.address : address.input.value.trim() });
        machines.touch();
      };
      const who = added.name
        ? `${nameOf(added)} answers at ${added.address}.`
        : `${added.address} is written down${added.other ? "; what answers there is no rappd" : ""}.`;
      toast(added.name || added.legacy || added.other ? who : `${who} Nobody answers there now.`, {
        actions: [{ label: "Undo", run: () => orShowFailure(undo) }],
      });
    },
  });
}

/** Calls a peer something else here; `renamed()` when it is so. */
export function openRenamePeer(peer, renamed) {
  const name = field("Name here", {
    value: peer.name,
    required: true,
    maxlength: 40,
    autocapitalize: "none",
    help: "Letters, digits, - and _. The other machine is not told.",
  });
  formDialog({
    title: "Rename",
    verb: "Rename",
    fields: [name],
    run: async () => {
      const now = (
        await peers.rename({ peer: peer.fingerprint, name: name.input.value })
      ).peer;
      machines.touch();
      renamed(now);
      toast(`It is called ${now.name} here.`);
    },
  });
}

/** A line about a peer; `noted()` when it is kept. */
export function openNote(peer, noted) {
  const text = field("Note", { value: peer.note ?? "", maxlength: 200, help: "For you alone. The other machine is not told." });
  formDialog({
    title: "Note",
    verb: "Save",
    fields: [text],
    run: async () => {
      noted((await peers.note({ peer: peer.fingerprint, text: text.input.value })).peer);
      machines.touch();
    },
  });
}

/** Asks, then ends the trust; `revoked()` when it is so. */
export function openRevoke(peer, revoked) {
  const dialog = formDialog({
    title: "",
    verb: "Revoke",
    fields: [],
    before: h(
      "ul",
      { class: "losses" },
      h("li", {}, named(peer), " may do nothing here any more, at once."),
      h("li", {}, "What waits for it stays in the outbox and is not sent."),
      h("li", {}, "What it was sent before stays with it."),
      h("li", {}, "To trust it again, pair anew: four words on both."),
    ),
    run: async () => {
      await peers.revoke({ peer: peer.fingerprint });
      machines.touch();
      toast(`${nameOf(peer)} is not trusted any more.`);
      revoked();
    },
  });
  dialog.querySelector("h2").replaceChildren("End the trust in ", named(peer), "?");
}
