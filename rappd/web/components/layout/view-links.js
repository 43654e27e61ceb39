/** Links to the views of a page, below its title. */

import { h } from "../../lib/dom.js";

/** Links for `views`, pairs of path and title; the view at `current` is marked. `notes`: text after a title, by path. */
export function viewLinks(page, views, current, notes = {}) {
  return views.map(([path, title]) =>
    h(
      "a",
      { href: `#/${page}${path && `/${path}`}`, "aria-current": path === current ? "page" : null },
      h("span", { "data-title": `${title}${notes[path] ? ` ${notes[path]}` : ""}` }, title, notes[path] && ` ${notes[path]}`),
    ),
  );
}
