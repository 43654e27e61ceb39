// The sheet behind ☰: conversations, the session with its people, what waits, eggs, and how to leave.

import { whyNotSecure } from "./not-secure.js";
import { conversationList } from "./web/components/conversations/conversation-list.js";
import { twins } from "./web/components/twins/twins-state.js";
import { openDialog } from "./web/components/ui/dialog.js";
import { formDialog } from "./web/components/ui/form-dialog.js";
import { daemon } from "./web/lib/daemon-state.js";
import { actionButton, fill, h } from "./web/lib/dom.js";

const UNPROTECTED = "This Wi-Fi blocks the private line. Others on it could read what is said.";

/**
 * The sheet of a session: `open({conversation, inRoom})`, `update()` draws what changed. `go` leads to a conversation or the
 * session, `leave` disconnects this phone.
 */
export function sheet(session, machine, { room, owners, carried, go, leave }) {
  const people = h("p", { class: "soft" });
  const joined = h("span", {});
  const about = h("span", { class: "soft" });
  const roomRow = actionButton([joined, about], () => (close(), go({ toRoom: true })), "secondary room-row");
  const clear = actionButton("Clear the conversation for everyone", askToClear);
  const problem = h("p", { class: "notice", role: "status" });
  const unprotected = h("p", { class: "soft", hidden: true }, UNPROTECTED);
  const explained = h("div", {}, whyNotSecure());
  let dialog = null;
  let list = null;
  let inRoom = false;

  const close = () => dialog?.close();
  room.parts.workflows.addEventListener("started", () => (close(), go({ toRoom: true })));

  function open(now) {
    inRoom = now.inRoom;
    dialog = openDialog({
      title: machine,
      build: () => h("div", { class: "dialog-body" }, inside(now)),
      closed: () => {
        list.close();
        dialog = list = null;
      },
    });
    dialog.classList.add("more");
    update();
  }

  const inside = ({ conversation }) => {
    list = conversationList({ conversation, renew: choose });
    return [
      problem,
      h("div", { class: "sheet-part" }, owners.list, carried.waiting),
      h("div", { class: "sheet-part" }, list.element),
      h("div", { class: "sheet-part" }, roomRow, people, room.parts.workflows, room.parts.aloud, clear),
      h("div", { class: "sheet-part" }, carried.menu),
      h("div", { class: "sheet-part" }, unprotected, explained),
      h("div", { class: "sheet-part" }, actionButton("Disconnect this phone", askToLeave)),
    ];
  };

  /** Asks for the partner of a new conversation; without twins there is nothing to choose. */
  function choose() {
    close();
    if (!twins.rows.length) return go({ to: "", anew: true });
    const targets = [["", daemon.name], ...twins.rows.map(({ key }) => [key, twins.toldApart(key)])];
    const choosing = openDialog({
      title: "Talk with",
      build: (done) => {
        const button = ([to, name]) =>
          actionButton(name, () => (done(), go({ to, anew: true })));
        return h("div", { class: "dialog-body targets" }, targets.map(button));
      },
    });
    return choosing;
  }

  function askToClear() {
    close();
    confirm("Clear the conversation for everyone?", "The screens of all who are in the session become empty.", "Clear", () => session.clear());
  }

  function askToLeave() {
    close();
    confirm("Disconnect this phone?", "What it keeps of your conversations is deleted here. To come back, it needs a new QR code.", "Disconnect", leave);
  }

  function update() {
    if (!dialog) return;
    const away = session.state !== "connected" && `${machine} is not connected.`;
    const words = [away, session.notice].filter(Boolean).join(" ");
    if (problem.textContent !== words) problem.textContent = words; // the bar lies behind
    problem.hidden = !words;
    roomRow.hidden = !session.id;
    clear.hidden = !session.id || !session.mayTalk || session.closed;
    room.parts.workflows.hidden ||= !session.id;
    if (room.parts.aloud) room.parts.aloud.hidden = !session.id;
    const others = session.here.length;
    fill(joined, "Session");
    fill(about, others ? `${others + 1} people` : "nobody else is here");
    if (inRoom) roomRow.setAttribute("aria-current", "page");
    else roomRow.removeAttribute("aria-current");
    const names = session.id && others ? `also here: ${session.here.join(", ")}` : "";
    if (people.textContent !== names) people.textContent = names;
    unprotected.hidden = session.secure !== false;
    explained.hidden = !unprotected.hidden;
  }

  return { open, update, close };
}

/** Asks before what cannot be taken back. */
function confirm(title, words, verb, run) {
  formDialog({ title, verb, fields: [], before: h("p", {}, words), run });
}
