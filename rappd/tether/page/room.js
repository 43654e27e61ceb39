// A session that this phone joined: what everybody said as bubbles, what is not yet sent below them, a line to write.

import { element } from "./element.js";
import { announce } from "./web/lib/live-region.js";
import { microphone, readAloud } from "./voice.js";
import { markdown } from "./web/components/chat/markdown.js";
import { cueView } from "./web/components/workflows/workflow-run.js";
import { autoscroll } from "./web/lib/autoscroll.js";
import { current, workflows } from "./workflows.js";

/** Builds the session's view; `update()` draws what changed. Its `parts` have their place in the sheet behind ☰. */
export function room(session) {
  const list = element("ol", { className: "events", ariaLabel: "Conversation", tabIndex: 0 });
  const notice = element("p", { className: "note" });
  const to = element("select", { ariaLabel: "Whom to ask" });
  const input = element("textarea", { rows: 1, placeholder: "Write…", ariaLabel: "Message" });
  const send = element("button", { type: "submit", className: "primary" }, "Send");
  const interrupt = element("button", { type: "button", className: "secondary", hidden: true }, "Interrupt");
  const aloud = readAloud();
  const speech = microphone(input, () => fit());
  const form = element("form", { className: "compose" }, input, to, speech?.button ?? "", interrupt, send);
  const steps = workflows(session);
  const view = element("section", { className: "room" }, steps.pill, list, notice, form);
  view.parts = { aloud: aloud?.button ?? "", workflows: steps.list };
  view.quiet = () => {
    speech?.stop();
    aloud?.quiet();
  };

  const say = (via) => {
    const text = input.value.trim();
    if (!text) return;
    speech?.stop();
    input.value = "";
    fit();
    session.say(text, to.value, via);
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    say("");
  };
  interrupt.onclick = () => say("mic");
  input.oninput = () => {
    fit();
    session.isTyping();
  };
  input.onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  };
  const fit = () => {
    input.rows = Math.min(5, input.value.split("\n").length);
  };

  const end = autoscroll(list, element("button")); // no sign tells of what is new below
  let drawn = 0;
  let first = null;
  let live = false; // what was said before this page came is not read aloud
  const rows = new Map();
  const offered = new Map(); // buttons "Ask again", by the sentence
  view.update = () => {
    const anew = first !== session.events[0];
    if (anew) {
      list.replaceChildren();
      rows.clear();
      offered.clear();
      drawn = 0;
      live = false;
      first = session.events[0];
    }
    for (const event of session.events.slice(drawn)) {
      addEvent(list, rows, offered, event, session);
      if (!live) continue;
      aloud?.hear(event);
      announce(heard(event, session));
    }
    live ||= session.upToDate;
    drawn = session.events.length;
    drawUnsent(list, session);
    if (session.returned && !input.value) {
      input.value = session.returned;
      fit();
    }
    session.returned = "";
    tell(notice, session.notice || (session.typing ? `${session.typing} is writing…` : ""));
    form.hidden = !session.mayTalk || session.closed;
    list.classList.toggle("silent", form.hidden);
    steps.update();
    interrupt.hidden = !session.mayRun || current(session)?.status !== "running";
    drawParticipants(to, session.participants);
    if (anew) end.toEnd();
    else end.grew();
  };
  return view;
}

/** Writes a line, and says it where it is another one. */
function tell(line, words) {
  if (line.textContent === words) return;
  line.textContent = words;
  announce(words, line);
}

/** The words of an event that a screen reader says: all that others said. */
function heard(event, session) {
  if (event.kind === "twin_response") return `${event.by}: ${wordsOf(event)}`;
  const mine = event.by === session.device.name && !event.imported;
  if (event.kind === "operator_input") return mine ? "" : `${event.by}: ${event.text}`;
  return event.kind === "tool_dispatch" ? "" : event.text;
}

const wordsOf = (event) => (event.error ? [event.text, event.do].filter(Boolean).join(" ") : event.text);

function addEvent(list, rows, offered, event, session) {
  if (event.on_behalf_of) {
    const mark = element("span", { className: "mark" });
    rows.set(event.event_id, { mark, event });
    list.append(element("li", { className: "step-asked" }, cueView(event)));
  } else if (event.kind === "demo_step") {
    return; // the question that follows tells as much
  } else if (event.kind === "operator_input") {
    const mine = event.by === session.device.name && !event.imported;
    const mark = element("span", { className: "mark" }, mine ? "delivered" : "");
    for (const button of offered.get(event.text) ?? []) button.remove();
    offered.delete(event.text);
    const row = element("li", { className: mine ? "mine" : "other" },
      mine ? "" : element("span", { className: "by" }, event.by), element("p", {}, event.text), mark);
    row.dataset.id = event.event_id;
    rows.set(event.event_id, { mark, event });
    list.append(row);
  } else if (event.kind === "twin_response") {
    const { mark, event: asked } = rows.get(event.event_id) ?? {};
    if (mark?.textContent) mark.textContent = event.error ? "not answered" : "answered";
    list.append(element("li", { className: event.error ? "other failed" : "other" },
      element("span", { className: "by" }, event.by),
      event.error ? element("p", {}, wordsOf(event)) : element("div", { className: "answer" }, markdown(event.text)),
      event.again && asked && !asked.on_behalf_of ? askAgain(asked, offered, session) : ""));
  } else if (event.kind === "tool_dispatch") {
    list.append(element("li", { className: "aside" }, `${event.by} uses ${event.text}`));
  } else if (event.text) {
    list.append(element("li", { className: "aside" }, event.text));
  }
}

/** Asks the same once more. It goes as soon as the same sentence stands in the conversation again. */
function askAgain(asked, offered, session) {
  const button = element("button", { type: "button", className: "again" }, "Ask again");
  offered.set(asked.text, [...(offered.get(asked.text) ?? []), button]);
  button.onclick = () => {
    button.remove();
    session.say(asked.text, asked.to);
  };
  return button;
}

function drawUnsent(list, session) {
  for (const old of list.querySelectorAll(".unsent")) old.remove();
  for (const one of session.unsent) {
    list.append(element("li", { className: "mine unsent" },
      element("p", {}, one.text), element("span", { className: "mark" }, "sending")));
  }
}

function drawParticipants(select, participants) {
  const names = participants.map((one) => one.name);
  const words = participants.map((one) => (one.presence === "away" ? `${one.name} (away)` : one.name));
  if (select.dataset.names === words.join("\n")) return;
  const first = select.dataset.names?.split("\n", 1)[0];
  select.dataset.names = words.join("\n");
  const chosen = select.value === first ? names[0] : select.value; // the first answers unless another is chosen
  select.replaceChildren(...names.map((name, n) => element("option", { value: name }, words[n])));
  if (names.includes(chosen)) select.value = chosen;
  select.hidden = names.length < 2;
}
