/** The answers to each kind of matter that waits: the dialogs and requests that exist for it elsewhere, from one place. */

import { actionButton, h } from "../../lib/dom.js";
import { bytes } from "../../lib/format.js";
import { agents, eggs, pairings } from "../../lib/operations.js";
import { agentsChanged } from "../agents/agent-import.js";
import { orShowFailure } from "../agents/failed-files.js";
import { formDialog } from "../ui/form-dialog.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";
import { waiting } from "./waiting-state.js";

const KINDS = {
  code: "Code to approve",
  needs: "Code asks for more",
  workflow: "Workflow to approve",
  pairing: "A machine wants to pair",
  phone: "A phone wants to join",
  device: "A phone came back by another way",
  egg: "An egg arrived",
  schedule: "A scheduled task failed",
  answer: "A late answer",
  member: "A machine joined your neighborhood",
  left: "A machine left your neighborhood",
  record: "Records of this machine are missing or changed",
  call: "Open calls came back",
  fault: "The list of quarantined code is damaged",
  answered: "Answered on a phone",
  unready: "This machine is not ready",
  organism: "Your list of what exists here has a fault",
  gateway: "A machine has another key than you wrote down",
};

/** The heading of a matter. */
export const nameOfKind = ({ kind, path }) =>
  kind === "code" && path === ".env" ? "Settings file to approve" : (KINDS[kind] ?? "Something happened");

/** The controls that answer a matter; what goes wrong appears in `problem`. */
export function answersTo(row, problem) {
  const button = (text, kind, run) =>
    actionButton(text, run, kind, { "aria-label": `${text}: ${row.what}` });
  const link = (text, href) => h("a", { class: "button secondary", href, "aria-label": `${text}: ${row.what}` }, text);
  const attempt = (work) => () => attemptIn(problem, work).then(() => waiting.touch());
  const controls = {
    code: () => [
      button("Read and approve", "secondary", attempt(() => readCode(row, problem))),
      button("Refuse", "quiet", attempt(() => refuse(row))),
    ],
    needs: () => controls.code().slice(0, row.path.startsWith("agents/") ? 2 : 1), // a service is taken away by hand
    workflow: () => [
      button("Read and approve", "secondary", attempt(() => readWorkflow(row, problem))),
      button("Refuse", "quiet", attempt(() => refuse(row))),
    ],
    pairing: () => [
      button("Compare words", "secondary", attempt(() => compareWords(row))),
      button("Refuse", "quiet", attempt(() => refusePairing(row))),
    ],
    phone: () => [
      button("Compare numbers", "secondary", attempt(compareNumbers)),
      button("Refuse", "quiet", attempt(refusePhone)),
    ],
    egg: () => [
      button("Look inside", "secondary", attempt(() => lookInside(row))),
      button("Throw away", "quiet", () => throwAway(row)),
    ],
    schedule: () => [link("See snapshots", "#/machines/neighborhood"), dismiss()],
    member: () => [link("See machines", "#/machines"), dismiss()],
    left: () => [link("See machines", "#/machines"), dismiss()],
    call: () => [link("See machines", "#/machines"), dismiss()],
    answer: () => [row.subject && link("Read it", `#/activity/thread/${encodeURIComponent(row.subject)}`), dismiss()],
  };
  const dismiss = () => button("Dismiss", "quiet", attempt(() => waiting.dismiss(row.key)));
  return controls[row.kind]?.() ?? (row.news ? [dismiss()] : []);
}

/** The name by which the routes of agents take a quarantined file. */
const fileOf = ({ path }) => path.replace(/^agents\//, "");

async function readCode(row, problem) {
  const { openSource } = await import("../agents/source-dialog.js");
  const env = row.path === ".env";
  const card = { reason: row.why, reach: row.reach, env, held: true, waits: true };
  await openSource({ filename: fileOf(row) }, card, problem, row.twin);
  afterDialog();
}

async function readWorkflow({ path, twin }, problem) {
  const { openWorkflow } = await import("../workflows/workflow-list.js");
  const stem = path.split("/").pop().replace(/\.json$/, "");
  await openWorkflow(twin ? `${twin.slice(0, 12)}/${stem}` : stem, problem, () => waiting.touch());
}

async function refuse(row) {
  const { twin } = row;
  const { message, undo } = await agents.refuse({ twin, filename: row.path });
  const back = async () => {
    await agents.undo({ twin, undo });
    changed();
  };
  changed();
  toast(message, { actions: [{ label: "Undo", run: () => orShowFailure(back) }] });
}

async function compareWords({ pairing }) {
  const { openPairing } = await import("../pairing/pairing-dialog.js");
  openPairing(pairing);
  afterDialog();
}

async function refusePairing({ pairing, what }) {
  await pairings.stop({ attempt: pairing.attempt });
  toast(`Refused: ${what}`);
}

async function compareNumbers() {
  const { openPhonePairing } = await import("../devices/phone-pairing.js");
  openPhonePairing();
  afterDialog();
}

async function refusePhone() {
  const { takeBack } = await import("../devices/phone-pairing.js");
  await takeBack();
}

async function lookInside({ name, path }) {
  const { openPlan } = await import("../eggs/plan-dialog.js");
  openPlan({ name, path }, () => waiting.touch());
}

function throwAway({ id, name, size }) {
  formDialog({
    title: `Throw ${name} away?`,
    verb: "Throw away",
    fields: [],
    before: h("p", {}, `${bytes(size)}. Nothing of it is in use, and it is gone then.`),
    run: async () => {
      await eggs.throwAway({ id });
      await waiting.touch();
      toast(`${name} was thrown away.`);
    },
  });
}

/** The list is asked for again once the dialog that was opened is closed. */
function afterDialog() {
  document.querySelector("dialog[open]")?.addEventListener("close", () => waiting.touch());
}

function changed() {
  agentsChanged.dispatchEvent(new Event("change"));
  waiting.touch();
}
