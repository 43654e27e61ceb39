/** A unified diff as two columns: what was on the left, what is on the right. */

import { h, visuallyHidden } from "../../lib/dom.js";

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** `lines` of a unified diff, its two heading lines included, of the file `name`. */
export function sides(lines, name) {
  return h(
    "div",
    { class: "sides", role: "region", tabindex: 0, "aria-label": `${name}, before and after` },
    h("div", { class: "sides-head", "aria-hidden": "true" }, h("span", {}, "before"), h("span", {}, "after")),
    h(
      "ol",
      { role: "list" },
      rows(lines.slice(2)).map(({ left, right, gap }) =>
        gap
          ? h("li", { class: "gap" }, gap)
          : h(
              "li",
              { class: left && right && !left.changed ? "same" : "differs" },
              side(left, "−", "before"),
              side(right, "+", "after"),
            ),
      ),
    ),
  );
}

/** Pairs of `{number, text, changed}`, either may be null; or a `gap` between what is shown. */
export function rows(lines) {
  const found = [];
  let [left, right] = [0, 0];
  let gone = [];
  let come = [];
  const flush = () => {
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1)
      found.push({ left: gone[at] ?? null, right: come[at] ?? null });
    gone = [];
    come = [];
  };
  for (const line of lines) {
    const hunk = HUNK.exec(line);
    const text = line.slice(1);
    if (hunk) {
      flush();
      [left, right] = [Number(hunk[1]), Number(hunk[2])];
      if (left > 1 || right > 1) found.push({ gap: `from line ${right || left}` });
    } else if (line.startsWith("-")) {
      if (come.length) flush();
      gone.push({ number: left++, text, changed: true });
    } else if (line.startsWith("+")) {
      come.push({ number: right++, text, changed: true });
    } else {
      flush();
      found.push({
        left: { number: left++, text, changed: false },
        right: { number: right++, text, changed: false },
      });
    }
  }
  flush();
  return found;
}

function side(line, sign, when) {
  if (!line) return h("span", { class: `side ${when} none` });
  return h(
    "span",
    { class: `side ${when}${line.changed ? " changed" : ""}` },
    h("span", { class: "number", "aria-hidden": "true" }, String(line.number)),
    h("span", { class: "mark", "aria-hidden": "true" }, line.changed ? sign : ""),
    line.changed && visuallyHidden(`${when}: `),
    h("code", {}, line.text || " "),
  );
}
