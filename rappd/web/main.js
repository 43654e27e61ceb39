/** Starts the page: the operator's key, the daemon's state, the pages, the keys, the turn left unfinished. */

import { loadAll, loaded, pages } from "./pages/pages.js";
import { Problem } from "./lib/api.js";
import { allConversations, conversationWith } from "./components/chat/conversation.js";
import { closeDetail } from "./components/ui/detail-panel.js";
import { daemon } from "./lib/daemon-state.js";
import { fill, h, icon } from "./lib/dom.js";
import { agentsChanged } from "./components/agents/agent-import.js";
import { startAgentNotices } from "./components/agents/agent-notices.js";
import { store, stored } from "./lib/storage.js";
import { openShortcuts, startShortcuts } from "./components/layout/keyboard-shortcuts.js";
import { localModelOffer } from "./components/settings/local-model-offer.js";
import { startPhoneNotices } from "./components/devices/phone-notice.js";
import { waiting } from "./components/waiting/waiting-state.js";
import { startPairingNotices } from "./components/machines/pairing-notice.js";
import { followDaemonEvents } from "./lib/event-stream.js";
import { draftOf, chatTarget } from "./components/chat/chat-target.js";
import { navigation } from "./components/layout/navigation.js";
import { go, route } from "./lib/router.js";
import { problemView } from "./components/ui/problem.js";
import { toast } from "./components/ui/toast.js";
import { failedFiles } from "./components/agents/failed-files.js";
import { resume, stop } from "./components/chat/turn-request.js";
import { sessions } from "./components/sessions/sessions-state.js";
import { twins } from "./components/twins/twins-state.js";
import { stopSpeaking, speaking } from "./components/chat/voice.js";

const QUIET_MS = 1000; // after which what is not seen no longer delays the first page
const SETTLED_MS = 10_000; // after which modules of other pages do not get in the way of the first words
const main = document.getElementById("main");
let wanted = null; // {page, rest}, as the address says
let shown = null; // {page, view}

const keyProblem = await useKey();
const skipLink = document.querySelector(".skip");
skipLink.addEventListener("click", skip);
skipLink.inert = false;
const frame = navigation(document.getElementById("navigation"), pages, search);
banner(document.getElementById("banner"));
localModelOffer(document.getElementById("offer"));
startShortcuts(pages, { search, write, escape, visit });
daemon.addEventListener("ended", () => keyProblem || failedFiles.add({ error: sessionEnded() }));
await daemon.start();
if (keyProblem && !daemon.operator && daemon.awake) {
  failedFiles.add(
    keyProblem.code === "no_key"
      ? keyProblem
      : {
          error: "That link was used before, or is too old. You can still chat.",
          todo: `for a new one: \`${daemon.command}\``,
        },
  );
}
route(pages, show);
takeUp();
daemon.addEventListener("back", takeUp);
daemon.addEventListener("back", () => shown?.page === wanted.page || show(wanted.page, wanted.rest));
agentsChanged.addEventListener("change", () => daemon.look());
twins.start();
sessions.start();
startPairingNotices();
startPhoneNotices();
waiting.start();
acceptDrops((target) =>
  document.querySelector("dialog[open]") ? null : (shown?.view.drops?.(target) ?? null),
);
keepAboveKeyboard();
startAgentNotices(tryIt);
followDaemonEvents();
setTimeout(() => {
  import("./components/layout/theme.js").then(({ startTheme }) => startTheme(), () => undefined); // the daemon knows it
}, QUIET_MS);
setTimeout(loadRest, SETTLED_MS);

/**
 * A start link carries its key behind the `#`, which no server sees; it leaves the address bar at once. `&go=` names
 * the page to begin with. Resolves to the `Problem` with it, if any.
 */
async function useKey() {
  const [, key, start] = /^#k=([^&]+)(?:&go=([\w/-]+))?$/.exec(location.hash) ?? [];
  if (!key) return null;
  history.replaceState(null, "", location.pathname + (start ? `#/${start}` : ""));
  try {
    await daemon.open(decodeURIComponent(key));
    return null;
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
    return found;
  }
}

/** A function, so that it is there while this module still waits for the daemon. */
function sessionEnded() {
  return `The operator's session of this browser has ended: open the page by the link of \`${daemon.command}\` again.`;
}

/** Keeps `element` (a status region) showing that the daemon doesn't answer, while it does not. */
function banner(element) {
  const draw = () => {
    const shown = element.childElementCount > 0;
    if (!daemon.awake && !shown)
      fill(element, h("p", {}, `${daemon.name} isn't answering. Trying again; your text is kept.`));
    if (daemon.awake && shown) fill(element);
  };
  daemon.addEventListener("change", draw);
  draw();
}

/** Resumes turns that a reload or a restart interrupted, once the daemon's identity is known. */
function takeUp() {
  if (!daemon.health) return;
  for (const conversation of allConversations()) conversation.adopt(daemon.health.node);
  resume();
}

/** Shows a page, after its module was fetched. While that fails, says so; the daemon's return tries again. */
async function show(page, rest) {
  wanted = { page, rest };
  frame.mark(page.id);
  try {
    if (!page.mount) await loaded(page);
  } catch (found) {
    if (!(found instanceof TypeError)) throw found; // what `import()` raises where the daemon is away
    if (wanted.page === page) unavailable(page);
  }
  if (page.mount && wanted.page === page) display(page, wanted.rest);
}

function display(page, rest) {
  const first = shown === null;
  const arrived = shown?.page !== page;
  if (arrived) {
    shown?.view.close();
    main.className = `at-${page.id}`;
    shown = { page, view: page.mount(main, { tryIt, pages }) };
    document.title = `${page.title} · ${daemon.name}`;
    main.scrollTop = 0;
  }
  shown.view.go(rest, arrived);
  if (first && shown.view.write && matchMedia("(pointer: fine)").matches) shown.view.write();
  else if (arrived && !first && !document.querySelector("dialog[open]"))
    main.querySelector("h1")?.focus({ preventScroll: true });
}

function unavailable(page) {
  shown?.view.close();
  shown = null;
  const problem = { error: `${page.title} could not be loaded: ${daemon.name} isn't answering.`, todo: "" };
  const heading = h("h1", { tabindex: -1 }, page.title);
  fill(main, h("section", { class: "page" }, h("div", { class: "column" }, heading, problemView(problem))));
}

function skip(event) {
  event.preventDefault();
  if (shown?.view.write) shown.view.write();
  else main.focus();
}

/** Goes to a page, Chat with whom one talked to last. */
function visit(id) {
  const page = pages.find((known) => known.id === id);
  go(id, ...(page.rest?.() ?? []));
}

/** Modules that are not needed at once are there when they are, also while the daemon is away. */
function loadRest() {
  loadAll();
  loadSearch().catch(() => undefined); // opening it tries again
  import("./components/cartridges/cartridge-state.js").catch(() => undefined); // opening one tries again
}

/** A function, so that it is there while this module still waits for the daemon. */
function loadSearch() {
  return import("./components/search/search-palette.js");
}

async function search() {
  const { openSearch } = await loadSearch();
  openSearch(pages, { shortcuts: () => openShortcuts(pages) });
}

function write() {
  if (shown?.page.id !== "chat") visit("chat");
  setTimeout(() => shown?.view.write?.());
}

/** Puts an example where one writes to the brainstem, or the twin `key`; what stood there can be had back. */
function tryIt(text, key = "") {
  const before = stored(draftOf(key), "");
  store(draftOf(key), text);
  if (before && before !== text)
    toast("Your draft was replaced.", { actions: [{ label: "Put back", run: () => tryIt(before, key) }] });
  if (shown?.page.id === "chat" && chatTarget.key === key) shown.view.put(text);
  chatTarget.turnTo(key);
  visit("chat");
  setTimeout(() => shown.view.write?.());
}

function escape() {
  if (closeDetail()) return true;
  if (speaking()) {
    stopSpeaking();
    return true;
  }
  const conversation = conversationWith(chatTarget.key);
  if (conversation.current) {
    stop(conversation);
    return true;
  }
  if (document.activeElement?.id !== "write") return false;
  document.activeElement.blur();
  return true;
}

/** Fits the page above the keyboard on browsers that lay it over the page (iOS). */
function keepAboveKeyboard() {
  const seen = window.visualViewport;
  if (!seen) return;
  const fit = () =>
    seen.scale === 1 && document.documentElement.style.setProperty("--view", `${Math.round(seen.height)}px`);
  seen.addEventListener("resize", fit);
}

/**
 * `onDrop(target)` gives what a drop on that element would do, `{words, take(files)}`, or null. While a file
 * hovers over a page that wants it, an overlay says the words; elsewhere a drop does nothing.
 */
function acceptDrops(onDrop) {
  const words = h("span", {});
  const overlay = h("div", { class: "drop-overlay", hidden: true }, h("p", {}, icon("file"), words));
  document.body.append(overlay);
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  const over = (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    const here = onDrop(event.target);
    event.dataTransfer.dropEffect = here ? "copy" : "none";
    overlay.hidden = !here;
    if (here) fill(words, here.words);
  };
  addEventListener("dragenter", over);
  addEventListener("dragover", over);
  addEventListener("dragleave", (event) => event.relatedTarget === null && (overlay.hidden = true));
  addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    overlay.hidden = true;
    onDrop(event.target)?.take([...event.dataTransfer.files]);
  });
}
