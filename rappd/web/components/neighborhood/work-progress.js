/** Progress of a snapshot, drill or restore: a bar for each machine, or one for the parts that are hatched. */

import { bytes, stripControl } from "../../lib/format.js";
import { actionButton, fill, h } from "../../lib/dom.js";

const STATES = { asking: "asking", failed: "failed", done: "done" };
const TITLES = { snapshot: "Taking a snapshot…", drill: "Trying whether it can be restored…", restore: "Restoring…" };

/** An element; `show(work)` draws what the daemon says, null empties it. `cancel()` is offered while it counts. */
export function workProgress({ cancel = null } = {}) {
  const title = h("p", { class: "nb-work-title" });
  const bars = h("ul", { class: "nb-bars", role: "list" });
  const button = cancel && actionButton("Cancel", cancel);
  const element = h(
    "div",
    { class: "nb-work", role: "group", "aria-label": "Progress", hidden: true },
    title,
    bars,
    button,
  );
  const rows = new Map();
  const row = (name) => {
    if (!rows.has(name)) {
      const bar = h("progress", { "aria-label": name });
      const about = h("span", { class: "soft" });
      rows.set(name, { bar, about, element: h("li", {}, h("bdi", {}, name), bar, about) });
      bars.append(rows.get(name).element);
    }
    return rows.get(name);
  };
  return {
    element,
    show(work) {
      element.hidden = !work;
      if (!work) {
        rows.clear();
        return fill(bars);
      }
      const { kind, phase, machines, parts } = work;
      const drilling = kind === "snapshot" && phase === "drilling";
      fill(title, drilling ? TITLES.drill : TITLES[kind]);
      if (button) button.hidden = !work.can_cancel;
      for (const { name, state, done, whole } of machines) {
        const { bar, about, element: line } = row(stripControl(name));
        line.dataset.state = state;
        set(bar, state === "done" || state === "failed" ? 1 : done, state === "done" || state === "failed" ? 1 : whole);
        fill(about, told(state, done, whole));
      }
      if (kind === "restore" && parts.whole) {
        const { bar, about } = row("Parts");
        set(bar, parts.done, parts.whole);
        fill(about, `${percent(parts.done, parts.whole)}, ${parts.done} of ${parts.whole}${parts.last && `, ${stripControl(parts.last)}`}`);
      }
    },
  };
}

const percent = (done, whole) => `${Math.floor((100 * done) / whole)} %`;

function set(bar, done, whole) {
  if (whole) {
    bar.max = whole;
    bar.value = done;
  } else bar.removeAttribute("value");
}

function told(state, done, whole) {
  const amount = done ? `, ${bytes(done)}` : "";
  if (STATES[state]) return `${STATES[state]}${state === "done" ? amount : ""}`;
  return `${whole ? percent(done, whole) : "reading"}${amount}`;
}
