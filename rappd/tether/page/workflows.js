// Workflows of the session: how far one is, for everybody; a list with Start, Pause and Stop, for those that may.

import { element } from "./element.js";

/** Builds the step pill and the list; `update(session)` draws what changed. */
export function workflows(session) {
  const pill = element("p", { className: "step", role: "status", hidden: true });
  const rows = element("ul", {});
  const list = element("details", { className: "workflows", hidden: true }, element("summary", {}, "Workflows"), rows);
  const begin = starting(session, () => list.dispatchEvent(new Event("started")));
  let drawn = "";
  const update = () => {
    const run = current(session);
    pill.hidden = !run;
    const words = run ? `step ${run.step} of ${run.steps} · ${run.participant}${run.status === "paused" ? " · paused" : ""}` : "";
    if (pill.textContent !== words) pill.textContent = words; // the same words anew would be said anew
    list.hidden = !session.mayRun || session.closed || session.workflows.length === 0;
    const next = JSON.stringify([session.workflows, run?.name, run?.status]);
    if (next === drawn) return;
    drawn = next;
    rows.replaceChildren(...session.workflows.map((one) => row(one, run, session, begin)));
  };
  return { pill, list, update };
}

/** The run that is not over; null where none is. */
export function current(session) {
  return session.underway && ["running", "paused"].includes(session.underway.status) ? session.underway : null;
}

function row(one, run, session, begin) {
  const buttons = [];
  const add = (words, action, onclick = () => session.runWorkflow(action, one.name)) => buttons.push(element("button", {
    type: "button",
    ariaLabel: `${words} ${one.title}`,
    onclick,
  }, words));
  if (run?.name === one.name) {
    if (run.status === "paused") add("Go on", "resume");
    else add("Pause", "pause");
    add("Stop", "abort");
  } else if (!run) add("Start", "start", () => begin(one));
  return element("li", {}, element("span", {}, `${one.title}, ${one.steps} ${one.steps === 1 ? "step" : "steps"}`), ...buttons);
}

/** Asks for what a workflow needs, in a dialog: its texts, and who plays. Returns what opens it. */
function starting(session, started) {
  const heading = element("h2", { id: "starting", tabIndex: -1 });
  const fields = element("div", { className: "fields" });
  const came = element("p", { className: "notice", role: "status" });
  const tell = (words) => (came.textContent = words);
  const close = () => dialog.close();
  const form = element("form", {}, heading, fields, came, element("div", { className: "buttons" },
    element("button", { type: "button", onclick: close }, "Cancel"), element("button", { type: "submit" }, "Start")));
  const dialog = element("dialog", { className: "matter starting" }, form);
  dialog.setAttribute("aria-labelledby", "starting");
  document.querySelector("dialog.starting")?.remove(); // of a conversation that was shown before
  document.body.append(dialog);
  let asked = null;

  form.onsubmit = (event) => {
    event.preventDefault();
    const given = { files: {}, plays: {} };
    for (const input of form.querySelectorAll("[name]")) {
      if (input.value.trim()) given[input.dataset.kind][input.name] = input.value.trim();
    }
    if (!session.runWorkflow("start", asked.name, given)) {
      tell(session.notice); // what was written stays
      return;
    }
    close();
    started();
  };
  return (one) => {
    asked = one;
    heading.textContent = `Start ${one.title}`;
    fields.replaceChildren(
      ...(one.files ?? []).map(({ name, file, there, optional }) => {
        const input = element("textarea", { name, rows: 3, required: !there && !optional });
        input.dataset.kind = "files";
        return labelled(name, input, there ? `Without it: what stands in ${file}.` : optional ? "It may be left out." : "");
      }),
      ...(one.participants ?? []).map(({ name, role, plays }) => {
        const own = plays || session.players[0];
        const names = [own, ...session.players.filter((player) => player !== own)];
        const input = element("select", { name }, ...names.map((player) => element("option", { value: player === own ? "" : player }, player)));
        input.dataset.kind = "plays";
        return labelled(role ? `${name}, ${role}` : name, input, "");
      }),
    );
    tell("");
    dialog.showModal();
    heading.focus();
  };
}

function labelled(words, input, help) {
  return element("label", {}, element("span", {}, words), input, help ? element("span", { className: "hint" }, help) : "");
}
