/** One turn of the conversation, as it is read: what you wrote, what was called, what came back. */

import { daemon } from "../../lib/daemon-state.js";
import { copyText, fill, h, withCode } from "../../lib/dom.js";
import { count, duration } from "../../lib/format.js";
import { sentenceForm, versionButtons } from "../conversations/turn-editing.js";
import { problemView } from "../ui/problem.js";
import { markdown } from "./markdown.js";
import { callView, planView, roundView } from "./tool-call.js";
import { canSpeak, speak } from "./voice.js";

const DRAW_MS = 80;
const WAIT_MS = 400;
const ATTACHED = /\n\nAttached file ([^\n]+):\n\n(~{4,})\n([\s\S]*?)\n\2(?=\n\n|$)/g; // as attachments.js writes it
const OFFLINE = ["no model", "offline brain"]; // the second: as conversations that were recorded earlier say it
const NO_MODEL = "(no model)"; // as `agents/providers/offline/responses.py` writes it
const HERE = "local model"; // a server on this computer that does not say what it is
const NUMBER = new Intl.NumberFormat("en-GB");

/**
 * The view of a turn: what `you` wrote and what `name` answered. `update()` draws what changed. `course` is how it may go
 * on: `again(turn, text)` asks once more, `versions(turn)` are ids, `choose(turn, id)` shows another one; without it the
 * turn is only read.
 */
export function turnView(turn, { name, you = "you", course = null, grew = () => undefined }) {
  const written = h("p", { class: "written" }, turn.user.replace(ATTACHED, ""));
  const attached = [...turn.user.matchAll(ATTACHED)].map(([, file, , content]) => attachedFile(file, content));
  const pictures = turn.pictures?.length ? h("div", {}) : null;
  const receipt = h("p", { class: "receipt" });
  const calls = h("div", { class: "calls" });
  const plans = h("div", { class: "plans" });
  const answer = h("div", { class: "answer" });
  const waiting = h(
    "p",
    { class: "waiting", hidden: true, "aria-hidden": "true" },
    h("span", { class: "dots" }, "…"),
  );
  const waitingFor = h("span", { class: "soft" });
  waiting.append(waitingFor);
  const thoughts = h("div", {});
  const thoughtsText = h("pre", { tabindex: 0, role: "group", "aria-label": "Thoughts of the model" });
  const after = h("div", { class: "after" });
  const views = new Map();
  let roundsDrawn = 0;
  let plansDrawn;
  let timer = 0;
  let text = null;
  let over = "";

  const element = h(
    "li",
    { class: "turn", tabindex: -1, "data-turn": turn.id },
    h(
      "div",
      { class: "line you" },
      h("h2", { class: "who" }, turn.timer ? "Timer" : you),
      h("div", { class: "said" }, written, pictures, attached, receipt),
    ),
    h(
      "div",
      { class: "line reply" },
      h("h2", { class: "who" }, name),
      h("div", { class: "said" }, thoughts, calls, plans, answer, waiting, after),
    ),
  );

  if (pictures)
    import("../attachments/picture-list.js").then(({ sentPictures }) => fill(pictures, sentPictures(turn, grew)));

  const drawText = (final) => {
    clearTimeout(timer);
    timer = 0;
    if (text === turn.text && !final) return;
    text = turn.text;
    fill(answer, text ? markdown(final ? withoutHint(text) : text, { final }) : null);
    grew();
  };

  const wait = setTimeout(() => {
    if (turn.state === "sending") receipt.textContent = "sending";
    waiting.hidden = over !== "" || turn.text !== "";
    grew();
  }, WAIT_MS);

  const drawRounds = (before) => {
    const rounds = turn.rounds ?? [];
    while (roundsDrawn < rounds.length && rounds[roundsDrawn].after <= before) {
      calls.append(roundView(rounds[roundsDrawn]));
      roundsDrawn += 1;
    }
  };

  const update = () => {
    for (const [place, call] of turn.calls.entries()) {
      drawRounds(place);
      if (!views.has(call.call)) {
        views.set(call.call, callView(call));
        calls.append(views.get(call.call).element);
      }
      views.get(call.call).update(turn.thread);
    }
    drawRounds(turn.calls.length);
    if (turn.plans !== plansDrawn) fill(plans, (plansDrawn = turn.plans)?.map(planView));
    if (turn.thoughts && thoughtsText.textContent !== turn.thoughts) {
      if (!thoughts.firstChild) thoughts.append(foldedThoughts(thoughtsText));
      thoughtsText.textContent = turn.thoughts;
    }
    waitingFor.textContent = turn.waitingFor ? ` ${turn.waitingFor}` : "";
    if (turn.waitingFor) waiting.removeAttribute("aria-hidden");
    if (turn.state !== "sending") receipt.textContent = "";
    if (["sending", "answering"].includes(turn.state)) {
      if (turn.text) waiting.hidden = !turn.waitingFor;
      if (turn.text !== text && !timer) timer = setTimeout(drawText, text ? DRAW_MS : 0); // the first word at once
      return;
    }
    const versions = course?.versions(turn) ?? [];
    const now = [turn.state, turn.notices.length, turn.thread, versions].join();
    if (now === over) return;
    over = now;
    clearTimeout(wait);
    waiting.hidden = true;
    drawText(turn.state !== "stopping");
    fill(after, ending(turn, course && { ...course, versions, edit, grew }));
    grew();
  };
  const edit = () => {
    const close = () => (form.replaceWith(written), element.querySelector("[data-edit]")?.focus());
    const form = sentenceForm(turn.user, {
      pictures: Boolean(pictures),
      cancel: close,
      send: (changed) => course.again(turn, changed) || close(),
    });
    written.replaceWith(form);
  };
  update();
  return { element, update };
}

function foldedThoughts(text) {
  const name = h("span", { class: "call-name" }, "Thoughts");
  return h("details", { class: "call thoughts" }, h("summary", {}, name), h("div", { class: "call-inside" }, text));
}

function ending(turn, course) {
  return [
    turn.state === "stopping" && h("p", { class: "soft" }, "Stopping…"),
    turn.state === "stopped" && h("p", { class: "soft" }, "Stopped."),
    turn.notices.map((text) => [
      h("p", { class: "notice" }, h("span", { class: "sign warn" }, "! "), withCode(text)),
      course && downloadOf(text, course.grew),
    ]),
    course && connectButton(turn.text),
    turn.twin &&
      h("div", { class: "twin-aside" }, h("p", { class: "soft" }, "Your twin adds"), markdown(turn.twin)),
    turn.problem && turn.state === "failed" && problemView(turn.problem, { quiet: true }),
    turn.state === "done" && answeredBy(turn),
    turn.state !== "stopping" && actions(turn, course),
  ];
}

/** The line on an answer: its source, its time, and its tokens; nothing where an older version did not record it. */
function answeredBy(turn) {
  const words = wordsOf(turn);
  return words && h("p", { class: "soft answered-by" }, words);
}

/** Without a model the answer itself begins with that; the line says it only where it does not. */
export function wordsOf({ text, model, provider, seconds, tokensIn, tokensOut }) {
  if (!model && !provider) return "";
  const offline = OFFLINE.includes(provider || model);
  const by = [model, provider === HERE ? "on this computer" : provider];
  return [
    offline ? !text?.startsWith(NO_MODEL) && "without a model" : [...new Set(by.filter(Boolean))].join(", "),
    seconds !== null && seconds !== undefined && duration(seconds),
    Boolean(tokensIn || tokensOut) && `${count(tokensIn ?? 0, "token")} in, ${NUMBER.format(tokensOut ?? 0)} out`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** The line below an answer: its source and version, and its buttons; two lines where that is too narrow. */
function actions(turn, course) {
  const aloud = turn.voice || turn.text;
  const button = (text, onclick, more = {}) => h("button", { type: "button", class: "quiet small", onclick, ...more }, text);
  const about = [
    turn.agentsUsed && h("span", { class: "soft agents-used" }, agentsUsed(turn.agentsUsed)),
    course && versionButtons(turn.id, course.versions, (id) => course.choose(turn, id)),
  ].filter(Boolean);
  return h(
    "div",
    { class: "foot" },
    about.length > 0 && h("div", { class: "foot-about" }, about),
    h(
      "div",
      { class: "foot-actions" },
      course &&
        button(turn.state === "done" ? "Answer again" : "Ask again", () => course.again(turn, turn.user), { "data-again": true }),
      course && button("Edit", course.edit, { "data-edit": true, "aria-label": "Edit what you wrote" }),
      turn.text && button("Copy", copy(turn.text)),
      turn.text && canSpeak && button("Read aloud", () => speak(aloud)),
    ),
  );
}

const agentsUsed = (names) => (names.length ? `Used ${names.join(", ")}` : "No agent was used");

const copy = (text) => async (event) => {
  const button = event.currentTarget;
  await copyText(text);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
};

/** A file that went with the sentence, folded. */
function attachedFile(file, content) {
  return h(
    "details",
    { class: "fold attached" },
    h("summary", {}, file),
    h("pre", { tabindex: 0, role: "region", "aria-label": file }, content),
  );
}

/** As `agents/providers/offline/responses.py` writes it. */
const HINT = /\n*For open questions connect a model: rappd models (?:connect|use local)\s*$/;

/** The end of a notice that says what helps where Ollama has not the model (`agents/providers/server_kinds.py`). */
const MISSING =
  /`ollama pull ([A-Za-z0-9][\w.:/-]{0,199})`, or choose another model(?: for this (?:conversation|twin))?\.?$/;

const offered = (text) => daemon.operator && daemon.health?.provider?.state === "no model" && HINT.test(text);

/** The text of an answer without what the button says. */
const withoutHint = (text) => (offered(text) ? text.replace(HINT, "") : text);

/** The button, null where there is nothing to connect. */
const connectButton = (text) =>
  offered(text)
    ? h("p", { class: "connect-model" }, h("a", { class: "button secondary", href: "#/settings/connect" }, "Connect a model"))
    : null;

/** The download of the model that a notice says Ollama lacks; null for any other notice. `grew()` once it is shown. */
function downloadOf(notice, grew) {
  const model = daemon.operator && MISSING.exec(notice)?.[1];
  if (!model) return null;
  const place = h("div", {});
  import("../models/model-download.js").then(({ modelDownload }) => {
    fill(place, modelDownload({ model }).element);
    grew();
  });
  return place;
}
