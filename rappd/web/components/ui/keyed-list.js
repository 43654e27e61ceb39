/** A list whose rows keep their elements, so that input and open parts stay. Long lists are drawn in pieces. */

import { h } from "../../lib/dom.js";

const PIECE = 60;

/**
 * A list element of `tag`. `keyOf(row)` tells rows apart; `make(row)` gives `{element, update(row), close()}`.
 * `show(rows)` draws them: the first sixty at once, more when one comes near the end, or by a button.
 */
export function keyedList(tag, className, keyOf, make) {
  const list = h(tag, { class: className, role: "list" });
  const more = h("button", { type: "button", class: "quiet more-rows", hidden: true });
  const drawn = new Map();
  let rows = [];
  let shown = PIECE;

  const draw = () => {
    const now = rows.slice(0, shown);
    const keys = new Set(now.map(keyOf));
    for (const [key, row] of drawn) {
      if (keys.has(key)) continue;
      row.close();
      row.element.remove();
      drawn.delete(key);
    }
    let before = null;
    for (const row of now) {
      const key = keyOf(row);
      if (drawn.has(key)) drawn.get(key).update(row);
      else drawn.set(key, make(row));
      const { element } = drawn.get(key);
      const place = before ? before.nextSibling : list.firstChild;
      if (element !== place) list.insertBefore(element, place);
      before = element;
    }
    more.hidden = rows.length <= shown;
    more.textContent = `Show more, ${shown} of ${rows.length}`;
    list.hidden = rows.length === 0;
  };
  const grow = () => {
    const next = drawn.size;
    shown += PIECE;
    draw();
    return list.children[next];
  };
  const watcher = new IntersectionObserver(
    (seen) => {
      if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
      grow();
      watcher.unobserve(more); // where it is still near, another piece is wanted, and nothing would tell
      watcher.observe(more);
    },
    {
      rootMargin: "600px",
    },
  );
  watcher.observe(more);
  more.addEventListener("click", () => grow()?.querySelector("a, button")?.focus());
  return {
    element: h("div", { class: "long-list" }, list, more),
    show(now) {
      rows = now;
      draw();
    },
    close() {
      watcher.disconnect();
      for (const row of drawn.values()) row.close();
    },
  };
}
