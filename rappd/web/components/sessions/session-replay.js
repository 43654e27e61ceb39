/** Replay of a session egg: its page in a frame that reaches nothing, a scrubber, and a way to go on from there. */

import { daemon } from "../../lib/daemon-state.js";
import { fill, h, icon } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { replays } from "../../lib/operations.js";
import { go } from "../../lib/router.js";
import { attemptIn, problemView } from "../ui/problem.js";

const STEP_MS = 900;
const BEGINNING = 90;
const RECORDED = "This is a recording. To go on from here, use the button below it.";

/** Fills `main` with the replay of the egg `id` that waits at the daemon. `close()` when done. */
export function sessionReplay(main, id) {
  const heading = h("div", {}, h("h1", { tabindex: -1, class: "visually-hidden" }, "Replay"));
  const place = h("section", { class: "chat" }, heading);
  let close = () => undefined;
  let closed = false;
  fill(main, place);
  replays.show({ id }).then(
    (found) => {
      if (!closed) close = show(place, heading, id, found);
    },
    (found) => {
      if (found.code === undefined) throw found;
      if (!closed) place.append(h("div", { class: "chat-column" }, problemView(found), back()));
    },
  );
  return {
    close() {
      closed = true;
      close();
    },
  };
}

function show(place, heading, id, { egg, events: found, transcript, foreign, frame: path }) {
  const events = found.map((event, index) => ({ ...event, index }));
  const trouble = h("div", {});
  const range = h("input", { type: "range", min: 0, max: Math.max(0, events.length - 1), "aria-label": "Event" });
  const label = h("output", { class: "soft replay-label" });
  const play = h("button", { type: "button", class: "secondary" }, "Play");
  const onward = h("button", { type: "button", class: "primary" }, "Go on from here");
  let mounted = mount(egg, path, found);
  let timer = 0;

  const seek = (index, settled = true) => {
    const event = events[index];
    range.value = index;
    const words = event ? `${event.by ? `${event.by}: ` : ""}${event.data.text || event.kind.replaceAll("_", " ")}` : "";
    label.textContent = `${index + 1} of ${events.length} · ${words.slice(0, BEGINNING)}`;
    range.setAttribute("aria-valuetext", label.textContent);
    mounted.seek(event, settled);
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  };
  range.addEventListener("input", () => seek(Number(range.value), false));
  range.addEventListener("change", () => seek(Number(range.value)));
  play.addEventListener("click", () => {
    if (timer) {
      stop();
      return;
    }
    if (Number(range.value) === events.length - 1) seek(0);
    play.textContent = "Pause";
    timer = setInterval(() => {
      if (Number(range.value) < events.length - 1) seek(Number(range.value) + 1);
      else stop();
    }, STEP_MS);
  });
  onward.addEventListener("click", () => {
    stop();
    attemptIn(trouble, async () => {
      const { event } = events[Number(range.value)];
      const session = await replays.branch({ id, at_event: event });
      go("chat", "session", session.id);
    });
  });
  const own = h("button", { type: "button", class: "quiet small" }, "Show the page it brought");
  own.addEventListener("click", () => {
    const theirs = mount(egg, `${path}/own`, transcript);
    mounted.close();
    mounted.element.replaceWith(theirs.element);
    mounted = theirs;
    own.remove();
    if (events.length) seek(Number(range.value));
  });
  heading.append(header(egg, foreign && own));
  place.append(
    mounted.element,
    h(
      "div",
      { class: "chat-foot replay-foot" },
      h(
        "div",
        { class: "chat-column" },
        trouble,
        events.length > 0 && [h("div", { class: "scrubber" }, play, range, onward), label],
      ),
    ),
  );
  if (events.length) seek(events.length - 1);
  return () => {
    stop();
    mounted.close();
  };
}

function header(egg, own) {
  const people = egg.participants.map(({ name }) => name).join(", ");
  const sign = egg.pinned ? h("span", { class: "sign good" }, "✓ ") : h("span", { class: "sign warn" }, "! ");
  const pins = egg.pinned ? "Page and transcript are what their hashes say." : `Unpinned: ${egg.unpinned}`;
  return h(
    "header",
    { class: "chat-head" },
    h(
      "div",
      { class: "chat-column" },
      h(
        "div",
        {},
        h("p", { class: "replay-title" }, egg.title),
        h("p", { class: "soft" }, [people, count(egg.events, "event")].filter(Boolean).join(" · ")),
        h("p", { class: "soft" }, sign, pins),
        egg.parent_rappid && h("p", { class: "soft" }, `Branched after event ${egg.branch_at_event} of ${egg.parent_rappid}`),
      ),
      h("div", { class: "session-actions" }, own, back()),
    ),
  );
}

const back = () =>
  h("a", { class: "button quiet small", href: "#/chat" }, icon("chevron", "icon back"), `Back to ${daemon.name}`);

/**
 * A page that replays the egg, in a frame without an origin, storage or network. Only messages of this very window count, and
 * after the first one only with the number that this mount gave it; whatever it says, nothing is done for it.
 */
function mount(egg, path, transcript) {
  const nonce = crypto.randomUUID();
  const element = h("div", { class: "replay-frame" });
  const frame = h("iframe", {
    title: `Page of ${egg.title}`,
    src: `http://localhost:${location.port}${path}`,
    sandbox: "allow-scripts",
    referrerpolicy: "no-referrer",
  });
  let at = null;
  let ready = false;
  let seeks = false;
  let loads = 0;

  /** A frame without an origin has no name for `targetOrigin`; it is told only what came in its own egg. */
  const tell = (message) => frame.contentWindow?.postMessage({ ...message, nonce }, "*");
  const begin = (shown) =>
    tell({
      kind: "cart_init",
      cart_rappid: egg.rappid,
      participants: egg.participants,
      title: egg.title,
      transcript: shown,
      event: at?.event,
      scrubber: "outside",
    });
  const receive = ({ source, origin, data }) => {
    if (source !== frame.contentWindow || origin !== "null" || !data || typeof data !== "object") return;
    if (data.kind === "cart_ready" && !ready) {
      ready = true;
      seeks = data.seeks === true;
      begin(seeks ? transcript : upTo());
    } else if (data.kind === "chat_request" && data.nonce === nonce) {
      tell({ kind: "chat_response", corr: data.corr, text: RECORDED });
    }
  };
  const upTo = () => (at ? transcript.slice(0, at.index + 1) : transcript);
  const close = () => removeEventListener("message", receive);
  addEventListener("message", receive);
  frame.addEventListener("load", () => {
    loads += 1;
    if (loads === 1) return;
    close();
    fill(element, h("p", { class: "note", role: "alert" }, "The egg's page tried to go elsewhere; it was closed."));
  });
  fill(element, frame);
  return {
    element,
    close,
    seek(event, settled) {
      at = event;
      if (!ready) return;
      if (seeks) tell({ kind: "cart_seek", event: event.event });
      else if (settled) begin(upTo());
    },
  };
}
