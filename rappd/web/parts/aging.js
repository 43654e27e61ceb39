/** A list fetched from the daemon: fresh, or dimmed "as of 14:02" while the daemon doesn't answer. */

import { clock } from "./clock.js";
import { desk } from "./desk.js";
import { fill, h } from "./dom.js";
import { problemView } from "./problem.js";

/**
 * Keeps `place` showing what `load()` gives, drawn by `draw(data)`. `refresh()` loads again; so does
 * the daemon's return. When loading fails the old list stays, dimmed. `close()` when done.
 */
export function aging(place, { load, draw }) {
  const body = h("div", { class: "aging-list" });
  const note = h("p", { class: "soft as-of", hidden: true });
  fill(place, note, body);
  let data = null;
  let at = 0;
  let closed = false;

  const dim = () => {
    if (!at || desk.awake) return;
    body.classList.add("old");
    fill(note, `as of ${clock(at)}`).hidden = false;
  };
  const redraw = () => data && fill(body, draw(data));
  const refresh = async () => {
    try {
      const loaded = await load();
      if (closed) return;
      data = loaded;
      at = Date.now();
      body.classList.remove("old");
      note.hidden = true;
      redraw();
    } catch (found) {
      if (found.code === undefined) throw found;
      if (closed) return;
      if (found.away) dim();
      else if (found.code !== "not_operator") fill(body, problemView(found));
    }
  };
  const changed = () => (desk.awake ? redraw() : dim());
  desk.addEventListener("back", refresh);
  desk.addEventListener("change", changed);
  refresh();
  return {
    refresh,
    redraw,
    close() {
      closed = true;
      desk.removeEventListener("back", refresh);
      desk.removeEventListener("change", changed);
    },
  };
}
