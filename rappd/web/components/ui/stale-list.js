/** A list fetched from the daemon: fresh, or dimmed "as of 14:02" while the daemon doesn't answer. */

import { clock } from "../../lib/format.js";
import { daemon } from "../../lib/daemon-state.js";
import { fill, h } from "../../lib/dom.js";
import { problemView } from "./problem.js";

const seen = new Map(); // name → {data, at}: what was last known, also after leaving a place

/**
 * Keeps `place` showing the list `name`: what `load()` gives, drawn by `draw(data)`. `refresh()` loads
 * again; so does the daemon's return. While it cannot load, the last known list stays, dimmed.
 * `close()` when done.
 */
export function staleList(place, { name, load, draw }) {
  const body = h("div", { class: "stale-list" });
  const note = h("p", { class: "soft as-of", hidden: true });
  fill(place, note, body);
  let closed = false;
  let loading = false;
  let again = false;
  let drawn = ""; // what is shown, as text: the same is not drawn twice, so that what was opened stays open

  const redraw = () => {
    if (!seen.has(name)) return;
    const { data } = seen.get(name);
    drawn = JSON.stringify(data);
    keepingFocus(body, () => fill(body, draw(data)));
  };
  const dim = () => {
    if (!seen.has(name)) return;
    body.classList.add("old");
    fill(note, `as of ${clock(seen.get(name).at)}`).hidden = false;
  };
  const refresh = async () => {
    again = loading;
    if (loading) return;
    loading = true;
    try {
      seen.set(name, { data: await load(), at: Date.now() });
      if (closed) return;
      body.classList.remove("old");
      note.hidden = true;
      if (JSON.stringify(seen.get(name).data) !== drawn) redraw();
    } catch (found) {
      if (found.code === undefined) throw found;
      if (closed) return;
      if (found.away) dim();
      else if (found.code !== "not_operator") {
        drawn = "";
        fill(body, problemView(found));
      }
    } finally {
      loading = false;
      if (again && !closed) refresh();
    }
  };
  const changed = () => daemon.awake || dim();
  daemon.addEventListener("back", refresh);
  daemon.addEventListener("change", changed);
  daemon.addEventListener("operator", redraw);
  // Not at once: what `draw` needs may be made just after this list.
  queueMicrotask(() => {
    redraw();
    if (!daemon.awake) dim();
    refresh();
  });
  return {
    refresh,
    close() {
      closed = true;
      daemon.removeEventListener("back", refresh);
      daemon.removeEventListener("change", changed);
      daemon.removeEventListener("operator", redraw);
    },
  };
}

/** A redrawn list gives the keyboard back to the control of the same name. */
function keepingFocus(body, draw) {
  const held = body.contains(document.activeElement) ? document.activeElement : null;
  const label = held?.getAttribute("aria-label");
  draw();
  if (!held) return;
  const same = held.id
    ? document.getElementById(held.id)
    : label && body.querySelector(`[aria-label="${CSS.escape(label)}"]`);
  same?.focus({ preventScroll: true });
}
