/** A session with phones, live: what everybody said, and a place to write to all. */

import { autoscroll } from "../../lib/autoscroll.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import { markdown } from "../chat/markdown.js";
import { eggs } from "../../lib/operations.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { cueView, isUnderWay, runBar } from "../workflows/workflow-run.js";
import { sessionPeople } from "./session-people.js";
import { SessionStream } from "./session-stream.js";
import { OWNER, titleOf } from "./sessions-state.js";

/** Fills `main` with the session `id`. `close()` when done. */
export function sessionView(main, id) {
  const stream = new SessionStream(id);
  const heading = h("h1", { class: "visually-hidden", tabindex: -1 }, "Session with phones");
  const title = h("p", { role: "status" });
  const clear = actionButton("Clear screens", () => act(() => stream.clear()), "quiet small");
  const end = actionButton("Close session", () => act(() => stream.end()), "quiet small");
  const bring = h("button", { type: "button", class: "secondary small", hidden: true, onclick: () => act(() => stream.bringPhones()) }, "Bring phones here");
  const people = sessionPeople(stream.id);
  let drawnPeople = null;
  const pack = actionButton("Save as egg", () => act(() => saveEgg(id)), "quiet small");
  const list = h("ol", { class: "turns session-events" });
  const column = h("div", { class: "chat-column" }, list);
  const scroller = h("div", { class: "chat-scroll", tabindex: 0, role: "region", "aria-label": "Session" }, column);
  const pill = h("button", { type: "button", class: "pill", hidden: true }, icon("down"), "New below");
  const scroll = autoscroll(scroller, pill, column);
  const trouble = h("div", {});
  const running = runBar((action) => act(() => stream.control(action)));
  const writing = composer(say);
  let first = null;
  let drawn = 0;
  let rows = new Map();

  function act(work) {
    return attemptIn(trouble, work);
  }

  async function say(text, to, event = crypto.randomUUID(), via = "") {
    return act(() => stream.say(text, to, event, via));
  }

  const add = (event) => {
    if (event.kind === "operator_input") {
      rows.set(event.event_id, event);
      for (const button of list.querySelectorAll("[data-again]"))
        if (button.dataset.again === event.text) button.remove();
    }
    list.append(eventView(event, rows.get(event.event_id), say));
  };
  const draw = () => {
    if (stream.events[0] !== first) {
      fill(list);
      rows = new Map();
      [first] = stream.events;
      drawn = 0;
    }
    for (const event of stream.events.slice(drawn)) add(event);
    if (drawn !== stream.events.length) scroll.grew();
    drawn = stream.events.length;
    const state = stream.closed ? "closed" : stream.connected ? "open" : "connecting…";
    const words = `${titleOf(stream.here)} — ${state}`;
    if (title.textContent !== words) title.textContent = words;
    clear.hidden = end.hidden = people.element.hidden = stream.closed;
    bring.hidden = stream.current;
    if (drawnPeople !== stream.participants) people.draw((drawnPeople = stream.participants));
    list.classList.toggle("closed", stream.closed);
    running.draw(stream.closed ? null : stream.underway);
    writing.draw(stream);
  };

  stream.addEventListener("change", draw);
  fill(
    main,
    h(
      "section",
      { class: "chat" },
      h(
        "div",
        {},
        heading,
        h(
          "header",
          { class: "chat-head" },
          h(
            "div",
            { class: "chat-column" },
            title,
            h(
              "div",
              { class: "session-actions" },
              bring,
              pack,
              clear,
              end,
              h("a", { class: "button quiet small", href: "#/chat" }, icon("chevron", "icon back"), `Back to ${daemon.name}`),
            ),
            people.element,
            running.element,
          ),
        ),
      ),
      scroller,
      h("div", { class: "chat-foot" }, h("div", { class: "chat-column" }, pill, trouble, writing.element)),
    ),
  );
  draw();
  stream.run().catch((found) => {
    if (found.code === undefined) throw found;
    fill(trouble, problemView(found));
  });
  return {
    write: writing.focus,
    put: writing.put,
    close() {
      stream.close();
      scroll.close();
    },
  };
}

/** Packs the session and saves the file. */
async function saveEgg(id) {
  const { packed } = await eggs.pack({ form: "session", item: id });
  const [folder, name] = packed.path.split("/").slice(-2);
  await eggs.save({ folder, name }, name);
}

function eventView(event, asked, say) {
  if (event.on_behalf_of) return h("li", { class: "turn" }, cueView(event));
  if (event.kind === "demo_step" || event.kind === "preempted")
    return h("li", { class: "turn", hidden: true }); // the question that follows tells as much, or the answer before
  if (event.kind === "operator_input")
    return line(event.by === OWNER && !event.imported ? "you" : event.by, h("p", { class: "written" }, event.text));
  if (event.kind === "twin_response" && event.error)
    return line(
      event.by,
      event.stopped ? h("p", { class: "soft" }, event.text) : problemView({ error: event.text, todo: event.do }, { quiet: true }),
      event.again && asked && !asked.on_behalf_of && againButton(asked, say),
    );
  if (event.kind === "twin_response")
    return line(event.by, h("div", { class: "answer" }, markdown(event.text, { final: true })));
  const words = event.kind === "tool_dispatch" ? `${event.by} uses ${event.text}` : event.text;
  return h("li", { class: "turn", hidden: !words }, h("p", { class: "soft" }, words));
}

function line(name, ...said) {
  return h(
    "li",
    { class: "turn" },
    h("div", { class: "line" }, h("span", { class: "who", title: name }, name), h("div", { class: "said" }, said)),
  );
}

function againButton(asked, say) {
  const again = () => say(asked.text, asked.to);
  return actionButton("Ask again", again, "quiet small", { "data-again": asked.text });
}

/** The form: whom to ask, the text, Send. What could not be sent stays, and goes with the same id. */
function composer(say) {
  const to = h("select", { "aria-label": "Whom to ask" });
  const field = h("textarea", { id: "write", rows: 1, "aria-label": "Write to the session", placeholder: "Write…" });
  const main = h("button", { type: "submit", class: "primary" }, "Send");
  const interrupt = h(
    "button",
    { type: "button", class: "secondary", hidden: true, title: "Ask at once; the step under way waits", onclick: () => send("mic") },
    "Interrupt",
  );
  const form = h("form", { class: "composer" }, field, h("div", { class: "composer-buttons" }, to, interrupt, main));
  let unsent = null;

  async function send(via) {
    const text = field.value.trim();
    if (!text) field.focus();
    if (!text || main.disabled) return;
    if (unsent?.text !== text) unsent = { text, id: crypto.randomUUID() };
    main.disabled = interrupt.disabled = true;
    const worked = await say(text, to.value, unsent.id, via);
    main.disabled = interrupt.disabled = false;
    if (worked && field.value.trim() === text) field.value = "";
    if (worked) unsent = null;
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send("");
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  const note = h("p", { class: "soft note", role: "status" });
  return {
    element: h("div", { class: "composer-place" }, form, note),
    focus: () => field.focus(),
    put: (text) => (field.value = text),
    draw({ participants, closed, typing, underway }) {
      form.hidden = closed;
      interrupt.hidden = !isUnderWay(underway) || underway.status !== "running";
      note.textContent = typing && `${typing} is writing…`;
      const words = participants.map(({ name, presence }) => (presence === "away" ? `${name} (away)` : name));
      if (to.dataset.names !== words.join("\n")) {
        const first = to.dataset.names?.split("\n", 1)[0];
        const chosen = to.value === first ? "" : to.value; // the first answers unless another is chosen
        to.dataset.names = words.join("\n");
        fill(to, participants.map(({ name }, n) => h("option", { value: name }, words[n])));
        if (participants.some(({ name }) => name === chosen)) to.value = chosen;
      }
      to.hidden = participants.length < 2;
    },
  };
}
