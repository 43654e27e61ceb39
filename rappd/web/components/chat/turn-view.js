/** One turn of the conversation, as it is read: what you wrote, what was called, what came back. */

import { callView } from "./tool-call.js";
import { fill, h, withCode } from "../../lib/dom.js";
import { markdown } from "./markdown.js";
import { problemView } from "../ui/problem.js";
import { canSpeak, speak } from "./voice.js";

const DRAW_MS = 80;
const WAIT_MS = 400;

/**
 * The view of a turn with the partner `name`. `update()` draws what changed; `again(text)` is called to ask
 * the same once more.
 */
export function turnView(turn, { name, again, grew }) {
  const receipt = h("p", { class: "receipt" });
  const calls = h("div", { class: "calls" });
  const answer = h("div", { class: "answer" });
  const waiting = h(
    "p",
    { class: "waiting", hidden: true, "aria-hidden": "true" },
    h("span", { class: "dots" }, "…"),
  );
  const after = h("div", { class: "after" });
  const views = new Map();
  let timer = 0;
  let text = null;
  let over = "";

  const element = h(
    "li",
    { class: "turn" },
    h(
      "div",
      { class: "line you" },
      h("span", { class: "who" }, "you"),
      h("div", { class: "said" }, h("p", { class: "written" }, turn.user), receipt),
    ),
    h(
      "div",
      { class: "line reply" },
      h("span", { class: "who" }, name),
      h("div", { class: "said" }, calls, answer, waiting, after),
    ),
  );

  const drawText = (final) => {
    clearTimeout(timer);
    timer = 0;
    if (text === turn.text && !final) return;
    text = turn.text;
    fill(answer, text ? markdown(text, { final }) : null);
    grew();
  };

  const wait = setTimeout(() => {
    if (turn.state === "sending") receipt.textContent = "sending";
    waiting.hidden = over !== "" || turn.text !== "";
    grew();
  }, WAIT_MS);

  const update = () => {
    for (const call of turn.calls) {
      if (!views.has(call.call)) {
        views.set(call.call, callView(call));
        calls.append(views.get(call.call).element);
      }
      views.get(call.call).update(turn.thread);
    }
    if (turn.state !== "sending") receipt.textContent = "";
    if (["sending", "answering"].includes(turn.state)) {
      if (turn.text) waiting.hidden = true;
      if (turn.text !== text && !timer) timer = setTimeout(drawText, DRAW_MS);
      return;
    }
    const now = turn.state + turn.notices.length + (turn.thread ?? "");
    if (now === over) return;
    over = now;
    clearTimeout(wait);
    waiting.hidden = true;
    drawText(turn.state !== "stopping");
    fill(after, ending(turn, again));
    grew();
  };
  update();
  return { element, update };
}

function ending(turn, again) {
  return [
    turn.state === "stopping" && h("p", { class: "soft" }, "Stopping…"),
    turn.state === "stopped" && h("p", { class: "soft" }, "Stopped."),
    turn.notices.map((text) =>
      h("p", { class: "notice" }, h("span", { class: "sign warn" }, "! "), withCode(text)),
    ),
    turn.twin &&
      h("div", { class: "twin-aside" }, h("p", { class: "soft" }, "Your twin adds"), markdown(turn.twin)),
    turn.problem && turn.state === "failed" && problemView(turn.problem, { quiet: true }),
    turn.state !== "stopping" && actions(turn, again),
  ];
}

function actions(turn, again) {
  const aloud = turn.voice || turn.text;
  return h(
    "div",
    { class: "foot" },
    turn.model && h("span", { class: "soft" }, turn.model),
    turn.state !== "done" &&
      h("button", { type: "button", class: "quiet small", onclick: () => again(turn.user) }, "Ask again"),
    turn.text && h("button", { type: "button", class: "quiet small", onclick: copy(turn.text) }, "Copy"),
    turn.text &&
      canSpeak &&
      h("button", { type: "button", class: "quiet small", onclick: () => speak(aloud) }, "Read aloud"),
  );
}

const copy = (text) => async (event) => {
  const button = event.currentTarget;
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
};
