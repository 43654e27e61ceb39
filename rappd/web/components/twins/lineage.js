/** Families as a picture: each member below its parent, and the same as text. */

import { count, onDay } from "../../lib/format.js";
import { fill, h } from "../../lib/dom.js";
import { fitting, s, text } from "../../lib/svg.js";
import { pageOf } from "./twin-words.js";

const ROW = 60;
const LEFT = 20;
const WORDS = 220; // px that a name gets at least
const NARROW = 480;
const STATES = { archived: "archived", purged: "deleted", elsewhere: "not on this machine" };

/**
 * `members` as the daemon lists them, in preorder with their `depth`. `here` is the key of the one whose page
 * this is. Returns the element and `close()`.
 */
export function lineage(members, here = "") {
  const box = h("div", {
    class: "family-box",
    role: "region",
    tabindex: -1,
    "aria-label": "Families as a picture",
  });
  const parents = parentsOf(members);
  let width = 0;
  const draw = () => {
    const focused = [...box.querySelectorAll(".kin")].indexOf(document.activeElement);
    fill(box, picture(members, parents, here, width));
    if (focused >= 0) box.querySelectorAll(".kin")[focused].focus();
  };
  const resized = new ResizeObserver(([{ contentRect }]) => {
    if (Math.round(contentRect.width) === width) return;
    width = Math.round(contentRect.width);
    draw();
  });
  resized.observe(box);
  const written = h(
    "details",
    { class: "fold" },
    h("summary", {}, "Show as text"),
    asText(members, parents, here),
  );
  return { element: h("div", {}, box, written), close: () => resized.disconnect() };
}

/** "4 twins in 2 families" */
export function families(members) {
  const roots = members.filter(({ depth }) => depth === 0).length;
  return `${count(members.length, "twin")} in ${count(roots, "family", "families")}`;
}

/** The index of each member's parent; -1 for the first of a family. */
function parentsOf(members) {
  const line = [];
  return members.map(({ depth }, at) => {
    line[depth] = at;
    return depth ? line[depth - 1] : -1;
  });
}

function picture(members, parents, here, width) {
  const deepest = members.reduce((most, { depth }) => Math.max(most, depth), 0);
  const step = width < NARROW ? 24 : 32;
  const whole = Math.max(width, LEFT + deepest * step + WORDS);
  const svg = s("svg", {
    class: "diagram family",
    role: "group",
    "aria-label": `${families(members)}. Arrow keys lead from one to the next.`,
    width: whole,
    height: members.length * ROW,
    viewBox: `0 0 ${whole} ${members.length * ROW}`,
  });
  const spot = (at) => ({ x: LEFT + members[at].depth * step, y: at * ROW + ROW / 2 });
  svg.append(...members.flatMap((_, at) => (parents[at] < 0 ? [] : [branch(spot(parents[at]), spot(at))])));
  const nodes = members.map((kin, at) =>
    node(kin, spot(at), whole, relation(members, parents[at]), kin.key === here),
  );
  svg.append(...nodes);
  walkable(svg, nodes, parents);
  return svg;
}

function branch(from, to) {
  const bend = 12;
  const path = `M${from.x} ${from.y + 17}V${to.y - bend}q0 ${bend} ${bend} ${bend}H${to.x - 14}`;
  return s("path", { class: "branch", d: path });
}

function node(kin, { x, y }, width, descent, isHere) {
  const lives = kin.state === "active" || kin.state === "archived";
  const space = width - x - 30;
  const about = [descent, ...aboutOf(kin)].filter(Boolean).join(", ");
  const one = s(lives ? "a" : "g", {
    class: `kin ${kin.state}${isHere ? " here" : ""}`,
    tabindex: -1,
    role: lives ? "link" : "img",
    "aria-label": `${kin.name}: ${about}`,
    ...(lives && { href: pageOf(kin.key) }),
    ...(isHere && { "aria-current": "true" }),
  });
  one.append(
    s("rect", { class: "ground", x: x - 18, y: y - 26, width: width - x + 17, height: 52, rx: 10 }),
    s("path", {
      class: "shape",
      d: `M${x} ${y - 16}c6.4 0 11.4 9.2 11.4 17.2s-5 13-11.4 13-11.4-5-11.4-13 5-17.2 11.4-17.2z`,
    }),
    kin.state === "purged"
      ? s("path", { class: "cross", d: `M${x - 5} ${y - 4}l10 10m0-10l-10 10` })
      : s("circle", { class: "yolk", cx: x, cy: y + 2, r: kin.state === "elsewhere" ? 2 : 5.5 }),
    text("name", x + 24, y - 3, fitting(kin.name, "620 16px", space)),
    text("about", x + 24, y + 16, fitting(aboutOf(kin).join(", "), "14px", space, 0)),
  );
  return one;
}

function aboutOf({ kind, state, born_at: born, looped }) {
  const when = born && !Number.isNaN(Date.parse(born)) && `born ${onDay(born)}`;
  return [STATES[state], looped && "its line ends in a circle", kind, when].filter(Boolean);
}

const relation = (members, parent) => (parent < 0 ? "" : `fork of ${members[parent].name}`);

/** Keys of the tree: one twin is in the order of Tab; arrows lead up, down, to the parent and to the first child. */
function walkable(svg, nodes, parents) {
  nodes[0]?.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    const at = nodes.indexOf(document.activeElement);
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      ArrowLeft: parents[at],
      ArrowRight: parents.indexOf(at),
      Home: 0,
      End: nodes.length - 1,
    }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    nodes[to]?.focus();
  });
  svg.addEventListener("focusin", ({ target }) => {
    for (const one of nodes) one.setAttribute("tabindex", one === target ? "0" : "-1");
    const left =
      target.querySelector(".shape").getBoundingClientRect().left - svg.getBoundingClientRect().left;
    const box = svg.parentElement;
    box.scrollTo({ left: left + WORDS > box.clientWidth ? left - LEFT : 0 });
    target.querySelector(".shape").scrollIntoView({ block: "nearest" });
  });
}

function asText(members, parents, here) {
  const lists = new Map([[-1, h("ul", { class: "kin-list" })]]); // by the parent's index
  const items = [];
  members.forEach((kin, at) => {
    const lives = kin.state === "active" || kin.state === "archived";
    const item = h(
      "li",
      {},
      lives && kin.key !== here ? h("a", { href: pageOf(kin.key) }, kin.name) : kin.name,
      h("span", { class: "soft" }, ` ${aboutOf(kin).join(", ")}`),
    );
    if (!lists.has(parents[at])) {
      lists.set(parents[at], h("ul", { class: "kin-list" }));
      items[parents[at]].append(lists.get(parents[at]));
    }
    lists.get(parents[at]).append(item);
    items.push(item);
  });
  return lists.get(-1);
}
