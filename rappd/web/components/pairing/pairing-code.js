/** Pairing by a code, for a machine without a screen: one shows it, the other types it. */

import { Problem } from "../../lib/api.js";
import { formDialog, field } from "../ui/form-dialog.js";
import { h } from "../../lib/dom.js";
import { pairings } from "../../lib/operations.js";
import { nameOf } from "../machines/machine-words.js";
import { machines } from "../machines/machines-state.js";
import { openPairing } from "./pairing-dialog.js";
import { ownerChoice } from "./owner-choice.js";

/** Shows a code, once it is said whose the other machine will be. */
export function openShowCode() {
  const whose = ownerChoice("Whose is the machine that will type it?");
  formDialog({
    title: "Show a code",
    verb: "Show it",
    fields: [],
    after: [
      h(
        "p",
        { class: "soft" },
        "For a machine without a screen. It is good for ten minutes and one pairing.",
      ),
      whose.element,
    ],
    run: async () => begin({ offer_code: true, whose: chosen(whose) }),
  });
}

/** Types the code that another machine shows. */
export function openTypeCode() {
  const found = machines.rows.filter((row) => !row.paired && !row.legacy);
  const list = h(
    "datalist",
    { id: "machines-found" },
    found.map((row) => h("option", { value: row.address }, nameOf(row))),
  );
  const where = field("Machine", {
    list: "machines-found",
    placeholder: "192.168.1.31",
    required: true,
    maxlength: 200,
    help: "The name or address of the machine that shows the code.",
  });
  const code = field("Code", {
    required: true,
    maxlength: 80,
    autocapitalize: "none",
    placeholder: "482-otter-violin",
  });
  const whose = ownerChoice("Whose is it?");
  formDialog({
    title: "Type a code",
    verb: "Pair",
    fields: [where, code],
    after: [list, whose.element],
    run: async () =>
      begin({ peer: where.input.value.trim(), code: code.input.value.trim(), whose: chosen(whose) }),
  });
}

async function begin(body) {
  const { pairing } = await pairings.begin(body);
  setTimeout(() => openPairing(pairing)); // when the dialog that asked is closed
}

function chosen(whose) {
  if (whose.value) return whose.value;
  whose.missing();
  throw new Problem({ error: "It is not said yet whose it is.", do: "Choose one of the two." });
}
