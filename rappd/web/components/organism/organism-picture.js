/** The organism as a picture: one part below the other, and bows from who asks to who is asked. */

import { fill, h } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { fitting, s, text } from "../../lib/svg.js";
import { askedWords, pageOf } from "./organism-nodes.js";

const ROW = 52;
const NARROW = 480;
const MOST = 200; // parts; the table has all
const SHAPES = {
  person: "M-9 0a9 9 0 1 0 18 0a9 9 0 1 0-18 0z",
  timer: "M0-11L11 0L0 11L-11 0z",
  brainstem: "M0-13c6 0 10.5 8.5 10.5 15s-4.5 11-10.5 11-10.5-4.5-10.5-11 4.5-15 10.5-15z",
  twin: "M0-13c6 0 10.5 8.5 10.5 15s-4.5 11-10.5 11-10.5-4.5-10.5-11 4.5-15 10.5-15z",
  agent: "M-5-9h10a4 4 0 0 1 4 4v10a4 4 0 0 1-4 4h-10a4 4 0 0 1-4-4v-10a4 4 0 0 1 4-4z",
  listener: "M-9-9h18v18h-18z",
  gateway: "M-6-10h12L12 0L6 10h-12L-12 0z",
  peer: "M-11-8h22v13h-22zM-6 10h12",
};

/** An empty picture: its element, `show(nodes, edges)` with nodes as `inOrder` gives them, and `close()`. */
export function organismPicture() {
  const box = h("div", { class: "organism-box", role: "region", tabindex: -1, "aria-label": "The organism as a picture" });
  const more = h("p", { class: "soft" });
  let width = 0;
  let [nodes, edges] = [[], []];
  const draw = () => {
    const focused = box.contains(document.activeElement) ? document.activeElement.id : "";
    fill(box, width > 0 && picture(nodes, edges, width));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };
  const resized = new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width || Math.round(contentRect.width) === width) return;
    width = Math.round(contentRect.width);
    draw();
  });
  resized.observe(box);
  const show = (all, between) => {
    [nodes, edges] = [all.slice(0, MOST), between];
    fill(more, all.length > MOST && `${count(all.length - MOST, "more part")} in the table.`);
    draw();
  };
  return { element: h("div", {}, box, more), show, close: () => resized.disconnect() };
}

function picture(nodes, edges, width) {
  const gutter = width < NARROW ? 72 : 150;
  const height = nodes.length * ROW;
  const svg = s("svg", {
    class: "diagram organism",
    role: "group",
    "aria-label": "Who asks whom. Arrow keys lead up and down, right to whom a part asks, left to who asks it.",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
  });
  const at = new Map(nodes.map(({ id }, index) => [id, index]));
  const bows = edges
    .filter(({ from, to }) => at.has(from) && at.has(to) && from !== to)
    .map((edge) => bow(edge, at.get(edge.from), at.get(edge.to), nodes.length, gutter));
  const parts = nodes.map((node, index) => part(node, index, gutter, width));
  svg.append(...bows.map(({ element }) => element), ...parts);
  walkable(svg, nodes, parts, at, bows);
  return svg;
}

/** The further apart, the wider; it ends in an arrow. One that was not used in the last hour is seen at its ends alone. */
function bow(edge, from, to, whole, gutter) {
  const [start, end] = [from, to].map((index) => index * ROW + ROW / 2);
  const right = gutter - 16;
  const reach = right - 10 - (right - 20) * Math.sqrt(Math.abs(to - from) / whole);
  const side = to > from ? 1 : -1;
  const element = s("g", { class: `bow ${edge.calls ? "used" : edge.kind === "asks" ? "unused" : "bound"}` });
  element.append(
    s("path", {
      class: "line",
      d: `M${right} ${start + 4 * side}C${reach} ${start + 4 * side} ${reach} ${end - 4 * side} ${right - 4} ${end - 4 * side}`,
      "stroke-width": edge.calls ? Math.min(6, 1.5 + Math.log2(edge.calls)) : 1.5,
    }),
    s("path", { class: "tip", d: `M${right + 2} ${end - 4 * side}l-9-5v10z` }),
  );
  return { element, from: edge.from, to: edge.to };
}

function part(node, index, gutter, width) {
  const y = index * ROW + ROW / 2;
  const page = pageOf(node);
  const asked = askedWords(node);
  const quiet = node.from.length > 0 && "not asked in the last hour";
  const space = width - gutter - 28;
  const one = s(page ? "a" : "g", {
    id: `part-${node.id}`.replaceAll(/\s/g, "_"),
    class: `part ${node.kind}${node.state === "ready" ? "" : " idle"}`,
    tabindex: -1,
    role: page ? "link" : "img",
    "aria-label": [node.name, node.about, asked || quiet].filter(Boolean).join(", "),
    ...(page && { href: page }),
  });
  one.append(
    s("rect", { class: "ground", x: gutter - 14, y: y - 24, width: width - gutter + 13, height: 48, rx: 10 }),
    s("path", { class: "shape", d: SHAPES[node.kind] ?? SHAPES.agent, transform: `translate(${gutter} ${y})` }),
    text("name", gutter + 20, y - 3, fitting(node.name, "620 16px", space)),
    text("about", gutter + 20, y + 16, fitting([node.about, asked].filter(Boolean).join(" · "), "14px", space, 0)),
  );
  return one;
}

/** Keys of the picture: one node is in the order of Tab; arrows lead on. The bows of the one that has the focus, or the pointer, stand out. */
function walkable(svg, nodes, parts, at, bows) {
  const mark = (element) => {
    const id = nodes[parts.indexOf(element)]?.id;
    for (const one of bows) one.element.classList.toggle("on", one.from === id || one.to === id);
  };
  parts[0]?.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    const here = parts.indexOf(document.activeElement);
    if (here < 0) return;
    const { from, to } = nodes[here];
    const busiest = (some, side) => at.get(some.toSorted((one, other) => other.calls - one.calls)[0]?.[side].id);
    const next = {
      ArrowDown: here + 1,
      ArrowUp: here - 1,
      ArrowLeft: busiest(from, "source"),
      ArrowRight: busiest(to, "target"),
      Home: 0,
      End: parts.length - 1,
    };
    if (!(event.key in next)) return;
    event.preventDefault();
    parts[next[event.key]]?.focus();
  });
  svg.addEventListener("focusin", ({ target }) => {
    for (const one of parts) one.setAttribute("tabindex", one === target ? "0" : "-1");
    mark(target);
    target.scrollIntoView({ block: "nearest" });
  });
  svg.addEventListener("focusout", () => mark(null));
  svg.addEventListener("pointerover", ({ target }) => mark(target.closest(".part") ?? document.activeElement));
}
