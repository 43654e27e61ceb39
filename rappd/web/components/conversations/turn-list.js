/** The turns of a conversation: those at the end first, earlier ones when one scrolls there. */

import { daemon } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";
import { loadEarlier, openConversation } from "./conversations-state.js";
import { announce } from "../../lib/live-region.js";
import { attemptIn } from "../ui/problem.js";
import { send } from "../chat/turn-request.js";
import { turnView } from "../chat/turn-view.js";

const NEAR = "1200px 0px 0px 0px"; // above what is seen

/**
 * Draws the turns into `scroller`, whose end `end` follows. `element` holds them; `draw()` after others took their place,
 * `reveal(id)` shows a turn, `close()` when done.
 */
export function turnList(conversation, { scroller, end }) {
  const list = h("ol", { class: "turns" });
  const problem = h("div", {});
  const earlier = h("button", { type: "button", class: "quiet small earlier", hidden: true }, "Earlier");
  const drawn = new Map(); // id → {turn, view}
  let loading = false;

  const course = {
    again: (turn, text) => send(conversation, text, turn) && (end.toEnd(), true),
    versions: (turn) => conversation.versions(turn),
    choose: (turn, id) => choose(turn, id),
  };
  const viewOf = (turn) => {
    if (drawn.get(turn.id)?.turn === turn) drawn.get(turn.id).view.update();
    else {
      const view = turnView(turn, { name: conversation.name, course, grew: () => end.grew() });
      drawn.set(turn.id, { turn, view });
    }
    return drawn.get(turn.id).view.element;
  };
  const drawState = () => {
    list.classList.toggle("busy", Boolean(conversation.current));
    earlier.hidden = !daemon.operator || !conversation.earlier;
  };
  const draw = () => {
    const ids = new Set(conversation.turns.map(({ id }) => id));
    for (const id of drawn.keys()) if (!ids.has(id)) drawn.delete(id);
    fill(list, conversation.turns.map(viewOf));
    drawState();
    end.toEnd();
  };
  const inFront = ({ detail }) => {
    const fromEnd = scroller.scrollHeight - scroller.scrollTop;
    list.prepend(...detail.map(viewOf));
    drawState();
    scroller.scrollTop = scroller.scrollHeight - fromEnd;
  };
  const load = async () => {
    if (loading || earlier.hidden) return;
    loading = true;
    fill(earlier, "Loading…");
    const done = await attemptIn(problem, () => loadEarlier(conversation));
    fill(earlier, "Earlier");
    loading = false;
    if (!done) return;
    watcher.unobserve(earlier); // looks again where it stands now
    watcher.observe(earlier);
  };
  const choose = async (turn, id) => {
    const mine = conversation.choose(turn, id);
    const done = mine || (await attemptIn(problem, () => openConversation(conversation.thread, id)));
    if (!done) return;
    announce("Another version is shown.");
    reveal(id, true);
  };
  const reveal = (id, quietly = false) => {
    const element = drawn.get(id)?.view.element;
    if (!element) return; // further back than is loaded at once
    element.scrollIntoView({ block: "center" });
    // What lies between was never laid out: where it stands is known only after a look.
    requestAnimationFrame(() => element.scrollIntoView({ block: "center" }));
    if (quietly) return element.querySelector(".versions button:not([disabled])")?.focus({ preventScroll: true });
    element.focus({ preventScroll: true });
    element.classList.add("shown-now");
  };

  const added = ({ detail }) => {
    list.append(viewOf(detail));
    drawState();
  };
  const changed = ({ detail }) => {
    drawn.get(detail.id)?.view.update();
    drawState();
  };
  const watcher = new IntersectionObserver((seen) => seen.some(({ isIntersecting }) => isIntersecting) && load(), {
    root: scroller,
    rootMargin: NEAR,
  });
  watcher.observe(earlier);
  earlier.addEventListener("click", load);
  conversation.addEventListener("added", added);
  conversation.addEventListener("changed", changed);
  conversation.addEventListener("replaced", draw);
  conversation.addEventListener("prepended", inFront);
  daemon.addEventListener("operator", drawState);
  return {
    element: h("div", { class: "turn-list" }, earlier, problem, list),
    draw,
    reveal,
    close() {
      watcher.disconnect();
      conversation.removeEventListener("added", added);
      conversation.removeEventListener("changed", changed);
      conversation.removeEventListener("replaced", draw);
      conversation.removeEventListener("prepended", inFront);
      daemon.removeEventListener("operator", drawState);
    },
  };
}
