// Workflows of the session: how far one is, for everybody; a list with Start, Pause and Stop, for those that may.

import { element } from "./element.js";

/** Builds the step pill and the list; `update(session)` draws what changed. */
export function workflows(session) {
  const pill = element("p", { className: "pill", role: "status", hidden: true });
  const rows = element("ul", {});
  const list = element("details", { className: "workflows", hidden: true }, element("summary", {}, "Workflows"), rows);
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
    rows.replaceChildren(...session.workflows.map((one) => row(one, run, session)));
  };
  return { pill, list, update };
}

/** The run that is not over; null where none is. */
export function current(session) {
  return session.underway && ["running", "paused"].includes(session.underway.status) ? session.underway : null;
}

function row(one, run, session) {
  const buttons = [];
  const add = (words, action) => buttons.push(element("button", {
    type: "button",
    ariaLabel: `${words} ${one.title}`,
    onclick: () => session.runWorkflow(action, one.name),
  }, words));
  if (run?.name === one.name) {
    if (run.status === "paused") add("Go on", "resume");
    else add("Pause", "pause");
    add("Stop", "abort");
  } else if (!run) add("Start", "start");
  return element("li", {}, element("span", {}, `${one.title}, ${one.steps} ${one.steps === 1 ? "step" : "steps"}`), ...buttons);
}
