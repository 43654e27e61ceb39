/** Starts the page: the operator's key, the daemon's state, the places, the keys, the turn left unfinished. */

import { places } from "./places/places.js";
import { Problem } from "./parts/api.js";
import { banner } from "./parts/banner.js";
import { allConversations, conversationWith } from "./parts/conversation.js";
import { closeDetail } from "./parts/detail.js";
import { desk } from "./parts/desk.js";
import { prepareIcons } from "./parts/dom.js";
import { acceptDrops } from "./parts/drops.js";
import { agentsChanged } from "./parts/incoming.js";
import { keep, kept } from "./parts/keep.js";
import { startKeys } from "./parts/keys.js";
import { localModel } from "./parts/local-model.js";
import { startMachines } from "./parts/machines-news.js";
import { followNews } from "./parts/news.js";
import { draftOf, partner } from "./parts/partner.js";
import { rail } from "./parts/rail.js";
import { go, route } from "./parts/router.js";
import { toast } from "./parts/toast.js";
import { troubles } from "./parts/troubles.js";
import { resume, stop } from "./parts/turn.js";
import { twins } from "./parts/twins.js";
import { hush, speaking } from "./parts/voice.js";

const ICONS = [
  "talk",
  "agents",
  "twins",
  "machines",
  "activity",
  "settings",
  "mark",
  "microphone",
  "close",
  "chevron",
  "file",
  "down",
  "more",
];
const main = document.getElementById("main");
let shown = null; // {place, view}

prepareIcons(ICONS);
const keyWorked = await useKey();
const frame = rail(document.getElementById("rail"), places);
banner(document.getElementById("banner"));
localModel(document.getElementById("offer"));
await desk.start();
if (!keyWorked && !desk.operator && desk.awake) {
  troubles.add({
    error: "That link was used before, or is too old. You can still talk.",
    todo: `for a new one: \`${desk.command}\``,
  });
}
route(places, show);
takeUp();
desk.addEventListener("back", takeUp);
agentsChanged.addEventListener("change", () => desk.look());
twins.start();
startMachines();
acceptDrops((target) =>
  document.querySelector("dialog[open]") ? null : (shown.view.drops?.(target) ?? null),
);
startKeys(places, { write, escape, place: visit });
keepAboveKeyboard();
document.querySelector(".skip").addEventListener("click", skip);
followNews(tryIt);

/** A start link carries its key behind the `#`, which no server sees; it leaves the address bar at once. */
async function useKey() {
  const key = /^#k=(.+)$/.exec(location.hash)?.[1];
  if (!key) return true;
  history.replaceState(null, "", location.pathname);
  try {
    await desk.open(decodeURIComponent(key));
    return true;
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
    return false;
  }
}

/** Takes up what a reload or a restart left unfinished, once it is sure whom it was said to. */
function takeUp() {
  if (!desk.health) return;
  for (const conversation of allConversations()) conversation.adopt(desk.health.node);
  resume();
}

function show(place, rest, arrived) {
  const first = shown === null;
  if (arrived) {
    shown?.view.close();
    main.className = `at-${place.id}`;
    shown = { place, view: place.mount(main, { tryIt, places }) };
    frame.mark(place.id);
    document.title = `${place.title} · ${desk.name}`;
    main.scrollTop = 0;
  }
  shown.view.go(rest, arrived);
  if (first && shown.view.write && matchMedia("(pointer: fine)").matches) shown.view.write();
  else if (arrived && !first && !document.querySelector("dialog[open]"))
    main.querySelector("h1")?.focus({ preventScroll: true });
}

function skip(event) {
  event.preventDefault();
  if (shown.view.write) shown.view.write();
  else main.focus();
}

/** Goes to a place, Talk with whom one talked to last. */
function visit(id) {
  const place = places.find((known) => known.id === id);
  go(id, ...(place.rest?.() ?? []));
}

function write() {
  if (shown.place.id !== "talk") visit("talk");
  setTimeout(() => shown.view.write?.());
}

/** Puts an example where one writes to the brainstem, or the twin `key`; what stood there can be had back. */
function tryIt(text, key = "") {
  const before = kept(draftOf(key), "");
  keep(draftOf(key), text);
  if (before && before !== text)
    toast("Your text was set aside.", { actions: [{ label: "Put back", run: () => tryIt(before, key) }] });
  if (shown.place.id === "talk" && partner.key === key) shown.view.put(text);
  partner.turnTo(key);
  visit("talk");
  setTimeout(() => shown.view.write?.());
}

function escape() {
  if (closeDetail()) return true;
  if (speaking()) {
    hush();
    return true;
  }
  const conversation = conversationWith(partner.key);
  if (conversation.current) {
    stop(conversation);
    return true;
  }
  if (document.activeElement?.id !== "write") return false;
  document.activeElement.blur();
  return true;
}

/** Where the browser lays the keyboard over the page instead of shrinking it (iOS). */
function keepAboveKeyboard() {
  const seen = window.visualViewport;
  if (!seen) return;
  const fit = () =>
    seen.scale === 1 && document.documentElement.style.setProperty("--view", `${Math.round(seen.height)}px`);
  seen.addEventListener("resize", fit);
}
