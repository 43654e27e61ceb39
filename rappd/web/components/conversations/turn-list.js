/** The turns of a conversation: those at the end first, earlier ones when one scrolls there. */

import { daemon } from "../../lib/daemon-state.js";
import { h } from "../../lib/dom.js";
import { loadEarlier, openConversation } from "./conversations-state.js";
import { markWords } from "../../lib/found-words.js";
import { announce } from "../../lib/live-region.js";
import { attemptIn } from "../ui/problem.js";
import { send } from "../chat/turn-request.js";
import { turnView } from "../chat/turn-view.js";

const NEAR = "1500px 0px"; // above and below what is seen
const MOST = 120; // turns that are drawn at once: a conversation may have thousands
const FIRST = 40;
const PIECE = 3; // what is drawn between two frames
const AHEAD = 40; // turns before the first one drawn, below which earlier ones are fetched

/**
 * Draws turns into `scroller`, whose end `end` follows: those around what is seen. `element` holds them; `draw()` shows the
 * end, `reveal(id, {words})` a turn and
 * the words in it, `close()` when done.
 */
export function turnList(conversation, { scroller, end }) {
  const list = h("ol", { class: "turns" });
  const problem = h("div", {});
  const earlier = h("button", { type: "button", class: "quiet small earlier", hidden: true }, "Earlier");
  const later = h("button", { type: "button", class: "quiet small earlier", hidden: true }, "Later");
  const drawn = new Map(); // id → {turn, view}
  let from = 0; // the part of the turns that is drawn
  let to = 0;
  let loading = false;

  const course = {
    again: (turn, text) => send(conversation, text, { instead: turn }) && (end.toEnd(), true),
    versions: (turn) => conversation.versions(turn),
    choose: (turn, id) => choose(turn, id),
  };
  const viewOf = (turn) => {
    if (drawn.get(turn.id)?.turn === turn) drawn.get(turn.id).view.update();
    else {
      drawn.get(turn.id)?.view.element.remove(); // of a copy that another tab stored
      const view = turnView(turn, { name: conversation.name, course, grew: () => end.grew() });
      drawn.set(turn.id, { turn, view });
    }
    return drawn.get(turn.id).view.element;
  };
  const drawState = () => {
    list.classList.toggle("busy", Boolean(conversation.current));
    earlier.hidden = from === 0 && !(daemon.reads && conversation.earlier);
    later.hidden = to >= conversation.turns.length;
  };
  /** Makes the list show the part, element by element: what stays keeps its focus and what is open in it. */
  const show = (first, last) => {
    from = Math.max(0, first);
    to = Math.min(conversation.turns.length, last);
    const wanted = conversation.turns.slice(from, to);
    const ids = new Set(wanted.map(({ id }) => id));
    for (const [id, { view }] of drawn) {
      if (ids.has(id)) continue;
      view.element.remove();
      drawn.delete(id);
    }
    const elements = wanted.map(viewOf);
    const fresh = elements.filter((element) => !element.isConnected);
    let next = list.firstChild;
    for (const element of elements) {
      if (element === next) next = next.nextSibling;
      else list.insertBefore(element, next);
    }
    // Out of sight a turn is not laid out. Two frames after it was, the browser remembers how high it is: nothing jumps.
    const learned = () => fresh.forEach((element) => element.classList.add("measured"));
    if (fresh.length) requestAnimationFrame(() => requestAnimationFrame(learned));
    drawState();
  };
  /** The same without moving what is seen. */
  const showAround = (first, last) => {
    const top = scroller.getBoundingClientRect().top;
    const seen = [...list.children].find((one) => one.getBoundingClientRect().bottom > top);
    const before = seen?.getBoundingClientRect().top;
    show(first, last);
    if (seen?.isConnected) scroller.scrollTop += seen.getBoundingClientRect().top - before;
    lookAgain();
  };
  const draw = () => {
    const { length } = conversation.turns;
    show(length - FIRST, length);
    end.toEnd();
    lookAgain();
  };
  const up = () => {
    if (from > 0) showAround(from - PIECE, Math.min(to, from - PIECE + MOST));
    if (from < AHEAD) load();
  };
  const down = () => to < conversation.turns.length && showAround(Math.max(from, to + PIECE - MOST), to + PIECE);
  const inFront = ({ detail }) => {
    from += detail.length;
    to += detail.length;
    showAround(from - PIECE, Math.min(to, from - PIECE + MOST));
  };
  const load = async () => {
    if (loading || !daemon.reads || !conversation.earlier) return;
    loading = true;
    await attemptIn(problem, () => loadEarlier(conversation));
    loading = false;
  };
  const lookAgain = () => {
    for (const one of [earlier, later]) {
      watcher.unobserve(one);
      watcher.observe(one);
    }
  };
  let choosing = false;
  const choose = async (turn, id) => {
    if (choosing) return; // pressed twice: the first one is being fetched
    choosing = true;
    let done = false;
    try {
      done = conversation.choose(turn, id);
      done ||= await attemptIn(problem, () => openConversation(conversation.thread, id));
    } finally {
      choosing = false;
    }
    if (!done) return;
    const shown = conversation.turns.find((one) => one.id === id);
    const versions = shown ? conversation.versions(shown) : [];
    if (shown) announce(`${versions.indexOf(id) + 1} of ${versions.length}`);
    reveal(id, { quietly: true });
  };
  const reveal = (id, { quietly = false, words = [] } = {}) => {
    const at = conversation.turns.findIndex((turn) => turn.id === id);
    if (at < 0) return; // further back than is loaded at once
    if (!drawn.has(id)) show(at - PIECE, at + FIRST);
    const { element } = drawn.get(id).view;
    element.scrollIntoView({ block: "center" });
    lookAgain();
    if (quietly) return element.querySelector(".versions button:not([disabled])")?.focus({ preventScroll: true });
    element.focus({ preventScroll: true });
    element.classList.add("shown-now");
    const found = markWords([...element.querySelectorAll(".written, .answer")], words);
    found?.startContainer.parentElement.scrollIntoView({ block: "center" }); // a long answer does not fit
  };

  const added = () => {
    const { length } = conversation.turns;
    if (to < length - 1) draw();
    else show(Math.max(from, length - MOST), length);
  };
  const changed = ({ detail }) => {
    drawn.get(detail.id)?.view.update();
    drawState();
  };
  const watcher = new IntersectionObserver(
    (seen) => {
      for (const { target, isIntersecting } of seen) if (isIntersecting) target === earlier ? up() : down();
    },
    { root: scroller, rootMargin: NEAR },
  );
  earlier.addEventListener("click", up);
  later.addEventListener("click", down);
  conversation.addEventListener("added", added);
  conversation.addEventListener("changed", changed);
  conversation.addEventListener("replaced", draw);
  conversation.addEventListener("prepended", inFront);
  daemon.addEventListener("operator", drawState);
  return {
    element: h("div", { class: "turn-list" }, earlier, problem, list, later),
    draw,
    reveal,
    close() {
      markWords([], []);
      watcher.disconnect();
      conversation.removeEventListener("added", added);
      conversation.removeEventListener("changed", changed);
      conversation.removeEventListener("replaced", draw);
      conversation.removeEventListener("prepended", inFront);
      daemon.removeEventListener("operator", drawState);
    },
  };
}
