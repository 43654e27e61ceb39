/** Dialogs about one phone: its name here, what it may do, and removing it. */

import { Problem } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import { bytes } from "../../lib/format.js";
import * as operations from "../../lib/operations.js";
import { eggOf } from "../eggs/packed-egg.js";
import { twins } from "../twins/twins-state.js";
import { field, formDialog } from "../ui/form-dialog.js";
import { progressLine } from "../ui/progress.js";
import { toast } from "../ui/toast.js";
import { devices } from "./devices-state.js";
import { nameOf, named, rights } from "./device-words.js";

const SCOPES = [
  ["talk", "Talk and listen", "It may ask, and sees what is said."],
  ["listen", "Only listen", "It sees what is said, and cannot write."],
];

let count = 0;

/** Calls a phone something else. */
export function openRenameDevice(row) {
  const name = field("Name", { value: row.name, required: true, maxlength: 40, autocapitalize: "none" });
  formDialog({
    title: "Rename the phone",
    verb: "Rename",
    fields: [name],
    run: async () => {
      const now = await operations.devices.change({ device: row.id, name: name.input.value });
      devices.touch();
      toast(`It is called ${nameOf(now)} now.`);
    },
  });
}

const KINDS = [
  ["mine", "Mine", "It sees your conversations and memory."],
  ["guest", "A guest's", "It has conversations and a memory of its own."],
];

/** Changes whose phone it is, whether it may talk, start workflows, send and receive eggs, and joins the session. */
export function openRights(row) {
  const group = `scope-${++count}`;
  const radios = SCOPES.map(([value]) => h("input", { type: "radio", name: group, value }));
  for (const radio of radios) radio.checked = radio.value === row.scope;
  const workflows = h("input", { type: "checkbox", role: "switch" });
  workflows.checked = row.workflows;
  const eggs = h("input", { type: "checkbox", role: "switch" });
  eggs.checked = row.eggs === true;
  const notices = h("input", { type: "checkbox", role: "switch" });
  notices.checked = row.notices === true;
  const session = h("input", { type: "checkbox", role: "switch" });
  session.checked = row.invited;
  const owners = KINDS.map(([value]) => h("input", { type: "radio", name: `${group}-whose`, value }));
  for (const radio of owners) radio.checked = radio.value === row.kind;
  const kind = () => owners.find(({ checked }) => checked).value;
  const allOf = () => {
    const mine = kind() === "mine";
    for (const one of [workflows, eggs, notices]) one.checked = mine;
    session.checked = mine || row.invited;
    session.disabled = mine;
  };
  session.disabled = row.kind === "mine";
  for (const radio of owners) radio.addEventListener("change", allOf);
  const dialog = formDialog({
    title: "",
    verb: "Save",
    fields: [],
    before: [
      h(
        "fieldset",
        { class: "whose" },
        h("legend", { class: "visually-hidden" }, `Whose phone ${nameOf(row)} is`),
        KINDS.map(([, title, meaning], at) => choiceLine(owners[at], title, meaning)),
      ),
      h(
        "fieldset",
        { class: "whose" },
        h("legend", { class: "visually-hidden" }, `What ${nameOf(row)} may do`),
        SCOPES.map(([, title, meaning], at) => choiceLine(radios[at], title, meaning)),
      ),
      h("label", { class: "switch" }, h("span", {}, "Start workflows"), workflows),
      h("label", { class: "switch" }, h("span", {}, "Send eggs, and save this session as one"), eggs),
      h("label", { class: "switch" }, h("span", {}, "See what waits for you, and dismiss news"), notices),
      h("label", { class: "switch" }, h("span", {}, "Join the session of the phones"), session),
    ],
    run: async () => {
      const now = await operations.devices.change({
        device: row.id,
        scope: radios.find(({ checked }) => checked).value,
        workflows: workflows.checked,
        eggs: eggs.checked,
        notices: notices.checked,
        kind: kind(),
        ...(kind() !== "mine" && { session: session.checked }),
      });
      devices.touch();
      toast(`${nameOf(now)} ${rights(now)}.`);
    },
  });
  dialog.querySelector("h2").replaceChildren("What ", named(row), " may do");
  radios.find(({ checked }) => checked)?.focus();
}

/** Packs a twin and puts it there for a phone, which shows it at once. */
export function openSendTwin(row) {
  const which = field("Twin", { tag: "select" });
  fill(which.input, twins.rows.map(({ key, name }) => h("option", { value: key }, name)));
  const place = h("div", {}, twins.rows.length ? null : h("p", { class: "soft" }, "There is no twin here yet."));
  const dialog = formDialog({
    title: "",
    verb: "Send",
    fields: [which],
    after: place,
    run: async () => {
      const twin = twins.rows.find(({ key }) => key === which.input.value);
      if (!twin) return;
      const path = await packed(twin, place);
      const { sent } = await operations.devices.sendEgg({ device: row.id, path });
      toast(`${sent.name} waits for ${nameOf(row)}, ${bytes(sent.size)}.`);
    },
  });
  dialog.querySelector("h2").replaceChildren("Send a twin to ", named(row));
}

/** Path of a twin's egg, packed anew unless it is fresh; `place` shows how far it is. Raises `Problem`. */
async function packed(twin, place) {
  const egg = eggOf(twin.key);
  if (!egg.isFresh(twin)) {
    const line = progressLine(`Packing ${twin.name}…`, { cancel: () => egg.cancel() });
    const moved = () => egg.far && line.moved(egg.far);
    fill(place, line.element);
    egg.addEventListener("moved", moved);
    await egg.pack(twin);
    egg.removeEventListener("moved", moved);
    fill(place);
  }
  if (egg.state !== "ready") throw egg.problem ?? new Problem({ error: "Cancelled; nothing was sent.", code: "cancelled" });
  return egg.packed.path;
}

/** Asks, then removes a phone. */
export function openRemoveDevice(row) {
  const dialog = formDialog({
    title: "",
    verb: "Remove",
    fields: [],
    before: h(
      "ul",
      { class: "losses" },
      h("li", {}, "It is out at once, also while somebody writes on it."),
      h("li", {}, "What was said stays here, and what the phone shows now stays on its screen."),
      h("li", {}, "To come back, it needs a new QR code."),
    ),
    run: async () => {
      await operations.devices.revoke({ device: row.id });
      devices.touch();
      toast(`${nameOf(row)} was removed.`);
    },
  });
  dialog.querySelector("h2").replaceChildren("Remove ", named(row), "?");
}

const choiceLine = (input, title, meaning) =>
  h(
    "label",
    { class: "choice-line" },
    input,
    h("span", {}, h("span", {}, title), h("span", { class: "soft" }, meaning)),
  );
