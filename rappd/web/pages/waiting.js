/** Waiting: all that waits for the owner, answered here; below it what comes at its time. */

import { operatorPage } from "../components/layout/operator-page.js";
import { timerList } from "../components/timers/timer-list.js";
import { waitingList } from "../components/waiting/waiting-list.js";
import { h } from "../lib/dom.js";

export const mount = operatorPage("Waiting for you", "see what waits for you, and answer it", (place) => {
  const [matters, timers] = [h("div", {}), h("div", {})];
  place.replaceChildren(matters, timers);
  const views = [waitingList(matters), timerList(timers)];
  return { close: () => views.forEach((view) => view.close()) };
});
