/** A buddy: how it is, drawn and in words, and what one can do with it. */

import { actionButton, fill, h } from "../../lib/dom.js";
import { attemptIn } from "../ui/problem.js";
import { announce } from "../../lib/live-region.js";
import * as operations from "../../lib/operations.js";
import { twins } from "../twins/twins-state.js";

const SVG = "http://www.w3.org/2000/svg";
const SIZES = { egg: 0, hatchling: 15, juvenile: 18, adult: 21, elder: 21 };
const MOUTHS = {
  happy: "M26 41q6 7 12 0",
  neutral: "M27 43h10",
  anxious: "M26 43q3-4 6 0t6 0",
  sad: "M26 45q6-7 12 0",
};

/**
 * The line of a buddy's row: its face, its mood and energy, Feed and Pet; with `whole` all that can be done.
 * `update(row)` when there is a newer one.
 */
export function buddyLine(row, { whole = false } = {}) {
  const face = h("div", {});
  const words = h("p", {});
  const meters = h("div", { class: "meters" });
  const told = h("p", {});
  const errorPlace = h("div", {});
  const does = (action, more = {}) =>
    attemptIn(errorPlace, async () => {
      const answer = await operations.buddies.act({ twin: row.key, action, ...more });
      const recalled = (answer.found ?? []).map((one) => `“${one.text ?? one}”`);
      fill(told, [answer.message, ...recalled].join(" "));
      announce(told.textContent);
      update({ ...row, name: answer.name, buddy: answer.buddy });
      twins.touch();
    });
  const button = (label, action) =>
    actionButton(label, () => does(action), "quiet", { "aria-label": `${label} ${row.name}` });
  const element = h(
    "div",
    { class: "buddy" },
    face,
    h("div", { class: "buddy-words" }, words, meters),
    h(
      "div",
      { class: "buddy-actions" },
      button("Feed", "feed"),
      button("Pet", "pet"),
      whole && button("Explore", "explore"),
    ),
    whole && remembering(does),
    told,
    errorPlace,
  );
  let drawn = "";
  function update(newer) {
    row = newer;
    const { stage, feels, mood, energy, xp } = row.buddy ?? {};
    const text = JSON.stringify([stage, feels, mood, energy, xp]);
    if (!row.buddy || text === drawn) return;
    drawn = text;
    fill(face, creature(stage, feels));
    const isEgg = stage === "egg";
    fill(
      words,
      isEgg
        ? "An egg. Feed it and it hatches."
        : [a(stage), feels, whole && `${Math.round(xp)} experience`].filter(Boolean).join(", "),
    );
    fill(meters, isEgg ? null : [meter("mood", mood), meter("energy", energy)]);
  }
  update(row);
  return { element, update };
}

/** Controls to store a memory and to recall one. */
function remembering(does) {
  const input = h("input", {
    type: "text",
    maxlength: 4000,
    "aria-label": "What to remember or recall",
    placeholder: "Remember that…",
  });
  const announce = (action) => async () => {
    const worked = await does(action, { text: input.value });
    if (worked && action === "remember") input.value = "";
  };
  return h(
    "form",
    { class: "field-row remembering", onsubmit: (event) => (event.preventDefault(), announce("remember")()) },
    input,
    h("button", { type: "submit", class: "secondary" }, "Remember"),
    actionButton("Recall", announce("recall"), "quiet"),
  );
}

function meter(name, value) {
  const rounded = Math.round(value);
  return h(
    "div",
    {},
    h("span", {}, name),
    h("meter", { min: 0, max: 100, value: rounded, "aria-label": name }),
    h("span", {}, String(rounded)),
  );
}

/** An egg; later a small round animal that grows with its stage and looks as it feels. */
function creature(stage, feels) {
  const svg = draw("svg", {
    class: "creature",
    viewBox: "0 0 64 64",
    role: "img",
    "aria-label": `${a(stage)}, ${feels}`,
  });
  const size = SIZES[stage] ?? 18;
  if (!size) {
    svg.append(
      draw("path", { class: "body", d: "M32 8c11 0 19 15 19 28s-8 20-19 20-19-7-19-20S21 8 32 8z" }),
    );
    svg.append(draw("path", { class: "line", d: "M24 24c1-4 3-7 6-8" }));
    return svg;
  }
  const foot = 56;
  const top = 40 - size;
  svg.append(draw("path", { class: "line", d: `M25 ${foot}v-5m14 5v-5` }));
  if (stage === "adult" || stage === "elder")
    svg.append(draw("path", { class: "line", d: `M${34 - size} 26l-4-8m${2 * size} 8l4-8` }));
  svg.append(draw("circle", { class: "inside", cx: 32, cy: 52 - size, r: size }));
  svg.append(
    draw("circle", { class: "eye", cx: 27, cy: 34, r: 2 }),
    draw("circle", { class: "eye", cx: 37, cy: 34, r: 2 }),
  );
  svg.append(draw("path", { class: "line", d: MOUTHS[feels] ?? MOUTHS.neutral }));
  if (stage === "hatchling")
    svg.append(
      draw("path", { class: "body", d: "M16 44l5 4 5-5 6 6 6-6 5 5 5-4c0 8-6 14-16 14s-16-6-16-14z" }),
    );
  if (stage === "juvenile") svg.append(draw("path", { class: "line", d: `M32 ${top - 4}q-4-5 1-8` }));
  if (stage === "elder") svg.append(draw("path", { class: "line", d: "M22 29q4-3 8 0m4 0q4-3 8 0" }));
  return svg;
}

function draw(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const a = (stage) => (stage === "egg" ? "an egg" : `${/^[aeiou]/.test(stage) ? "an" : "a"} ${stage}`);
