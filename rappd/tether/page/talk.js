// The phone once it is connected: a conversation of its own or the session, below one bar; the rest is behind ☰.

import { eggs } from "./eggs.js";
import { announce } from "./web/lib/live-region.js";
import { room } from "./room.js";
import { sheet } from "./sheet.js";
import { forgets, isBlocked, keep } from "./storage.js";
import { waiting } from "./waiting.js";
import { composer } from "./web/components/chat/composer.js";
import { conversationWith } from "./web/components/chat/conversation.js";
import { resume, send, suspend } from "./web/components/chat/turn-request.js";
import { conversations, openConversation } from "./web/components/conversations/conversations-state.js";
import { turnList } from "./web/components/conversations/turn-list.js";
import { twins } from "./web/components/twins/twins-state.js";
import { carryBy } from "./web/lib/api.js";
import { autoscroll } from "./web/lib/autoscroll.js";
import { daemon } from "./web/lib/daemon-state.js";
import { actionButton, fill, h, icon } from "./web/lib/dom.js";
import * as operations from "./web/lib/operations.js";
import { store, stored, storeFor } from "./web/lib/storage.js";
import { current } from "./workflows.js";

const PLACE = "phone.place"; // what was open last: {room} or {key}
const STATES = {
  connected: ["●", "connected"],
  connecting: ["○", "connecting…"],
  lost: ["○", "not connected"],
};

/** The number of people, workflows under way, eggs and matters behind ☰, and the same in words. */
function behind(session) {
  const numbers = [
    [session.id ? session.here.length : 0, (n) => `${n} ${n === 1 ? "person" : "people"} here`],
    [session.id && current(session) ? 1 : 0, () => "1 workflow under way"],
    [session.eggs.offers.length, (n) => `${n} ${n === 1 ? "egg" : "eggs"} for you`],
    [session.waiting.rows.length + session.waiting.more, (n) => `${n} waiting`],
  ].filter(([n]) => n);
  return [numbers.reduce((sum, [n]) => sum + n, 0), numbers.map(([n, words]) => words(n))];
}

/** Builds the view; `update()` draws what changed. */
export function talk(session, machine, { onLeave }) {
  carryBy(session.link.fetch);
  daemon.name = machine;
  const heading = h("h1", { tabindex: -1 }, machine);
  const state = h("span", { class: "state" });
  const count = h("span", { class: "count", hidden: true, "aria-hidden": "true" });
  const more = actionButton([h("span", { "aria-hidden": "true" }, "☰"), count], () => open(), "quiet");
  const notice = h("p", { class: "notice" });
  const carried = eggs(session);
  const lines = h("div", { class: "lines" }, notice, carried.line, isBlocked() && forgets());
  const body = h("div", { class: "talk-body" });
  const view = h("section", { class: "talk" }, h("header", { class: "bar" }, heading, state, more), lines, body);
  const joined = { view: room(session), shown: false };
  const owners = waiting(session, machine);
  const sheets = sheet(session, machine, { room: joined.view, owners, carried, go, leave });
  let own = null;
  let key = "";
  let placed = false;
  let connected = false;

  function leave() {
    joined.view.quiet();
    onLeave();
  }

  function open() {
    sheets.open({ conversation: conversationWith(key), inRoom: joined.shown });
  }

  /** Goes to the session, or to the conversation with a chat target; `anew` begins another one. */
  function go({ toRoom = false, to = key, anew = false }) {
    joined.shown = toRoom;
    own?.close();
    own = null;
    if (toRoom) fill(body, joined.view);
    else {
      key = to;
      if (anew) conversationWith(key).renew();
      own = ownConversation(key);
      fill(body, own.element);
      own.shown();
      if (connected) own.readTimers();
    }
    store(PLACE, toRoom ? { room: true } : { key });
    drawHeading();
    view.update();
    if (anew) own.write();
  }

  session.timerSpoke = (thread) => conversationWith(key).thread === thread && own?.readTimers();

  const drawHeading = () => {
    if (!placed) return; // a conversation is read from where it is known whose it is
    const name = joined.shown ? `${machine}, session` : conversationWith(key).name;
    if (heading.textContent !== name) heading.textContent = name;
  };

  /** Goes to the last place; else to the session that this phone was invited to, where nothing was said outside of it. */
  const place = () => {
    placed = true;
    storeFor(session.kind);
    const last = stored(PLACE);
    const invited = session.kind === "guest" && session.id !== "" && !conversationWith("").turns.length;
    go({ toRoom: last ? Boolean(last.room) : invited, to: last?.key ?? "" });
  };

  /** Takes the kind of this phone, which decides what it shows. The owner may change it later; the way of the connection counts. */
  const knowKind = async () => {
    const before = session.device.kind;
    if (before === session.kind) return;
    session.device.kind = session.kind;
    await keep("device", session.device);
    if (before && !isBlocked()) location.reload();
  };

  const answered = () => {
    connected = true;
    if (!placed) place();
    if (joined.shown && !session.id) go({ toRoom: false, to: "" });
    daemon.look().then(resume);
    own?.readTimers();
  };

  view.update = () => {
    if (session.state === "connected" && session.device.kind !== session.kind) knowKind();
    if (session.state === "connected" && !connected) answered();
    else if (session.state !== "connected" && connected) connected = false;
    const [mark, words] = STATES[session.state] ?? STATES.lost;
    const text = `${mark} ${words}${session.state === "connected" && session.secure === false ? ", not private" : ""}`;
    if (state.textContent !== text) {
      const first = !state.textContent || state.classList.contains("connecting");
      state.textContent = text;
      state.className = `state ${session.state}`;
      if (!first && session.state === "connected") announce(`${text.slice(2)}.`, notice);
    }
    const lost = session.state === "lost" ? `Lost ${machine}. Trying again. What you write is kept.` : "";
    const note = lost || (joined.shown ? "" : session.notice);
    if (notice.textContent !== note) {
      notice.textContent = note;
      if (note) announce(note, notice);
    }
    joined.view.update();
    owners.update();
    carried.update();
    own?.element.classList.toggle("only-reads", !session.mayTalk);
    const [number, told] = behind(session);
    count.hidden = number === 0;
    count.textContent = String(number);
    const label = ["Conversations and more", ...told].join(", ");
    if (more.getAttribute("aria-label") !== label) more.setAttribute("aria-label", label);
    sheets.update();
  };

  // What is opened takes the place of what was open: a step back would lead to where nothing happens.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#/"]');
    if (!link) return;
    event.preventDefault();
    location.replace(link.hash);
  });
  addEventListener("hashchange", async () => {
    const [, chat, kind, id, at = "", words = ""] = location.hash.split("/").map(decodeURIComponent);
    if (!chat) return;
    history.replaceState(null, "", location.pathname);
    if (chat !== "chat" || kind !== "conversation") {
      session.change({ notice: "That was said to a program. It is read on the computer, under Activity." });
      return;
    }
    sheets.close();
    const found = await openConversation(id, at).catch((problem) => session.change({ notice: problem.message }));
    if (typeof found !== "string") return;
    go({ to: found });
    if (at) own.reveal(at, { words: words.split(" ").filter(Boolean) });
  });
  twins.addEventListener("change", drawHeading);
  /** Once it is in the page: what was said before is there while the computer is looked for. */
  view.start = () => {
    if (session.kind) place();
    view.update();
  };
  // What is answered is read in another tab, or no more.
  view.rest = suspend;
  daemon.start();
  twins.start();
  return view;
}

const TRIES = ["what can you do?", "what day is it in 10 days?", "remember that my car is red"];

/** The conversation with a chat target. `shown()` once it is in the page, `close()` when done. */
function ownConversation(key) {
  const conversation = conversationWith(key);
  const empty = h("div", { class: "empty-chat" });
  const scroller = h("div", { class: "chat-scroll", tabindex: 0, role: "region", "aria-label": "Conversation" });
  const pill = h("button", { type: "button", class: "pill", hidden: true }, icon("down"), "New below");
  const column = h("div", { class: "chat-column" });
  const end = autoscroll(scroller, pill, column);
  const list = turnList(conversation, { scroller, end });
  const writing = composer(conversation, { sent: () => end.toEnd(), camera: true });
  const ask = (text) => send(conversation, text) && end.toEnd();
  column.append(empty, list.element);
  scroller.append(column);
  scroller.addEventListener("grew", () => end.grew());

  /** Reads what a timer said here that this page does not show yet, as while it was closed. */
  const readTimers = async () => {
    const { thread } = conversation;
    if (!thread) return;
    const recorded = await operations.conversations.show({ thread }).catch(() => null); // at the next visit, then
    const here = new Set(conversation.turns.map(({ id }) => id));
    if (conversation.thread !== thread || !recorded?.turns.some(({ id, timer }) => timer && !here.has(id))) return;
    await openConversation(thread).catch(() => null);
  };

  const draw = () => {
    empty.hidden = conversation.turns.length > 0;
    if (empty.hidden || empty.firstChild) return;
    const tries = TRIES.map((text) => h("li", {}, actionButton(text, () => ask(text), "try")));
    fill(
      empty,
      h("p", { class: "greeting" }, `Talk with ${conversation.name}.`),
      h("p", { class: "soft" }, "Three things to try:"),
      h("ul", { class: "tries" }, tries),
    );
  };
  const changed = ({ detail }) => {
    draw();
    if (["done", "stopped", "failed"].includes(detail.state)) conversations.refresh();
  };
  const watched = [["added", draw], ["changed", changed], ["replaced", draw]];
  for (const [type, heard] of watched) conversation.addEventListener(type, heard);
  draw();
  return {
    element: h(
      "section",
      { class: "chat" },
      h("div", {}),
      scroller,
      h("div", { class: "chat-foot" }, h("div", { class: "chat-column" }, pill, writing.element)),
    ),
    shown: list.draw,
    write: writing.focus,
    readTimers,
    reveal: list.reveal,
    close() {
      for (const [type, heard] of watched) conversation.removeEventListener(type, heard);
      list.close();
      writing.close();
      end.close();
    },
  };
}
