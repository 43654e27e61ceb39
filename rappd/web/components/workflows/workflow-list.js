/** Workflows: what each asks, running one in the session that phones are in, and approving a foreign one. */

import { Problem } from "../../lib/api.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { daemonEvents } from "../../lib/event-stream.js";
import { count } from "../../lib/format.js";
import * as operations from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { openDialog } from "../ui/dialog.js";
import { field, formDialog } from "../ui/form-dialog.js";
import { keyedList } from "../ui/keyed-list.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { positionOf } from "./workflow-run.js";

const SOON_MS = 400;

/** `element` is hidden until there are some; `close()` when it leaves the page. */
export function workflowList() {
  const trouble = h("div", {});
  let runs = [];
  const begin = (row) => startWorkflow(row, trouble, look);
  const list = keyedList("ul", "cards", ({ name }) => name, (row) => card(row, { trouble, running, change, begin }));
  const element = h("section", { class: "group after-cards", hidden: true }, h("h2", {}, "Workflows"), trouble, list.element);
  let open = true;
  let soon = 0;

  function running({ name }) {
    return runs.find((run) => run.name === name);
  }

  async function look() {
    const { workflows = [], runs: under = [] } = await operations.workflows.list();
    if (!open) return;
    runs = under;
    element.hidden = !workflows.length;
    list.show(workflows);
  }

  function change(work) {
    return attemptIn(trouble, async () => {
      await work();
      await look();
    });
  }

  const moved = () => {
    clearTimeout(soon);
    soon = setTimeout(() => open && attemptIn(trouble, look), SOON_MS);
  };
  daemonEvents.addEventListener("event", moved);
  daemonEvents.addEventListener("sessions", moved);
  attemptIn(trouble, look);
  return {
    element,
    close() {
      open = false;
      clearTimeout(soon);
      daemonEvents.removeEventListener("event", moved);
      daemonEvents.removeEventListener("sessions", moved);
      list.close();
    },
  };
}

function card(row, { trouble, running, change, begin }) {
  const title = h("h3", {});
  const words = h("p", {});
  const why = h("div", {});
  const actions = h("div", { class: "card-actions" });
  const element = h("li", { class: "card machine", "data-workflow": row.name }, h("div", { class: "card-words" }, title, words, why), actions);
  const button = (text, kind, work) =>
    actionButton(text, work, kind, { "aria-label": `${text}: ${row.title}` });
  const update = (newer) => {
    row = newer;
    const run = running(row);
    element.classList.toggle("quarantined", Boolean(row.foreign));
    fill(title, row.title);
    fill(words, run ? positionOf(run) : about(row));
    fill(why, row.problem ? problemView({ error: row.problem.error, todo: row.problem.do }, { quiet: true }) : row.foreign && foreign(row));
    const control = (action) => () => change(() => operations.workflows.control({ action, session: run.session }));
    const buttons = run
      ? [
          run.status === "paused" ? button("Go on", "secondary", control("resume")) : button("Pause", "secondary", control("pause")),
          button("Stop", "quiet", control("abort")),
          h("a", { class: "button quiet", href: `#/chat/session/${run.session}`, "aria-label": `Show: ${row.title}` }, "Show"),
        ]
      : [
          !row.foreign && !row.problem && button("Start", "secondary", () => begin(row)),
          !row.problem && button(row.foreign ? "Read and approve" : "Read", row.foreign ? "secondary" : "quiet", () => read(row, trouble, change)),
        ];
    fill(actions, buttons.filter(Boolean));
  };
  update(row);
  return { element, update, close: () => undefined };
}

function about(row) {
  const origin = row.foreign ? "foreign, not run" : row.shipped ? "comes with rappd" : "yours";
  return [row.twin && `of ${row.twin}`, origin, count(row.steps, "step")].filter(Boolean).join(" · ");
}

function foreign({ foreign: reason, origin }) {
  return h("p", { class: "reason" }, h("span", { class: "sign warn" }, "! "), reason, origin && ` It came in ${origin}.`);
}

/** Shows the workflow `name`, to be approved; `changed()` once it was. Problems appear in `trouble`. */
export function openWorkflow(name, trouble, changed) {
  return read({ name }, trouble, (work) => attemptIn(trouble, work).then(changed));
}

/** Shows every step; a foreign one is approved exactly as it is shown. */
function read(row, trouble, change) {
  return attemptIn(trouble, async () => {
    const found = await operations.workflows.show({ name: row.name });
    if (!found.workflow) throw new Problem(found.problem);
    const steps = found.workflow.steps.map(({ participant, cue }) => h("li", {}, h("strong", {}, participant), h("pre", {}, cue)));
    openDialog({
      title: found.title,
      wide: true,
      build: (close) => {
        const approve = () => {
          close();
          change(() => operations.workflows.approve({ name: row.name, sha256: found.sha256 }));
        };
        return h(
          "div",
          { class: "workflow-steps" },
          found.workflow.about && h("p", {}, found.workflow.about),
          found.foreign && foreign(found),
          h("ol", {}, steps),
          found.foreign && actionButton("Approve exactly this", approve, "primary"),
        );
      },
    });
  });
}

/** Asks for what `row` needs, in a dialog; `started()` once it runs. Problems before it opens appear in `trouble`. */
function startWorkflow(row, trouble, started) {
  return attemptIn(trouble, async () => {
    const found = await operations.workflows.show({ name: row.name });
    const texts = found.files.map((one) => ({ name: one.name, ...textField(one) }));
    const asked = new Set(found.workflow.steps.map(({ participant }) => participant));
    const parts = found.workflow.participants.filter(({ name }) => asked.has(name)).map((one) => ({ name: one.name, ...playerField(one, found.players) }));
    formDialog({
      title: `Start ${found.title}`,
      verb: "Start",
      before: found.workflow.about && h("p", { class: "soft" }, found.workflow.about),
      fields: [...texts, ...parts],
      run: async () => {
        const { run } = await operations.workflows.run({ name: row.name, files: given(texts), plays: given(parts) });
        started();
        go("chat", "session", run.session);
      },
    });
  });
}

function textField({ name, file, there, optional }) {
  const without = there ? `Without it: what stands in ${file}.` : optional ? "It may be left out." : "";
  return field(titled(name), { tag: "textarea", rows: 4, help: without, required: !there && !optional });
}

function playerField({ name, role, plays }, players) {
  const own = plays || players[0];
  const all = [own, ...players.filter((one) => one !== own)];
  return { own, ...field(role ? `${name}, ${role}` : name, { tag: "select", options: all }) };
}

/** Fields that were filled in, or chosen in place of the workflow's file, by names. */
function given(fields) {
  const changed = fields.filter(({ input, own }) => input.value.trim() && input.value !== own);
  return Object.fromEntries(changed.map(({ name, input }) => [name, input.value.trim()]));
}

const titled = (name) => name.charAt(0).toUpperCase() + name.slice(1);
