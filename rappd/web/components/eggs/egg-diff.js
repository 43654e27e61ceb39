/** Two eggs side by side: what differs, file by file. */

import { bytes, clock, count, onDay } from "../../lib/format.js";
import { chooseEgg } from "./egg-import.js";
import { discardEgg, uploadEgg, withSignatures } from "./egg-upload.js";
import { fill, h, visuallyHidden } from "../../lib/dom.js";
import { attemptIn } from "../ui/problem.js";
import { progressLine } from "../ui/progress.js";
import { announce } from "../../lib/live-region.js";
import * as operations from "../../lib/operations.js";
import { sides } from "../ui/diff-view.js";
import { twins } from "../twins/twins-state.js";

/** `drops(target)` says what a drop there does for it, or null; `close()` when done. */
export function eggDiff() {
  const errorPlace = h("div", {});
  const result = h("div", { class: "diff" });
  const compare = async () => {
    fill(result);
    if (!before.egg || !after.egg) return fill(errorPlace);
    const json = { before: before.egg, after: after.egg };
    await attemptIn(errorPlace, async () => draw((await operations.eggs.diff(json)).diff));
  };
  const before = slot("Before", compare);
  const after = slot("After", compare);
  const slots = [before, after];
  const offer = () => slots.forEach((one) => one.offer());
  twins.addEventListener("change", offer);
  const draw = (diff) => {
    fill(result, differences(diff));
    announce(summary(diff));
  };
  return {
    element: h(
      "div",
      {},
      h("div", { class: "slots" }, slots.map(({ element }) => element)),
      errorPlace,
      result,
    ),
    drops(target) {
      const aimed = slots.find(({ element }) => element.contains(target));
      if (aimed) return { words: `Drop to compare: ${aimed.name}`, take: aimed.take };
      if (Boolean(before.egg) === Boolean(after.egg)) return null;
      return { words: "Drop to compare", take: (before.egg ? after : before).take };
    },
    close() {
      twins.removeEventListener("change", offer);
      for (const one of slots) one.close();
    },
  };
}

/** A place for an egg: a file, or a twin as it is now. `egg` is what the daemon calls it, null without one. */
function slot(name, changed) {
  const errorPlace = h("div", {});
  const body = h("div", {});
  const element = h(
    "div",
    { class: "slot", role: "group", "aria-label": name },
    h("h3", {}, name),
    body,
    errorPlace,
  );
  const self = { name, element, egg: null, take, close, offer };
  let control = null;

  function empty() {
    element.classList.remove("filled");
    body.dataset.empty = "yes";
    const pick = h(
      "select",
      { "aria-label": `${name}: a twin as it is now` },
      h("option", { value: "" }, "A twin as it is now…"),
      twins.rows.map(({ key }) => h("option", { value: key }, twins.toldApart(key))),
    );
    pick.addEventListener("change", () => pick.value && packed(pick.value));
    fill(body, chooseEgg("Choose an egg", { taken: take }), twins.rows.length > 0 && pick);
  }

  /** Offers the twins that live here now, unless the place is taken or in use. */
  function offer() {
    if (body.dataset.empty && !body.contains(document.activeElement)) empty();
  }

  /** The first egg of `files`, and its signature. */
  async function take(files) {
    const [file, signature] = withSignatures(files)[0] ?? [];
    if (!file) return;
    close();
    body.dataset.empty = "";
    control = new AbortController();
    const line = progressLine(`Reading ${file.name}…`, { cancel: close });
    fill(body, line.element);
    await hold(async () => {
      const { id, egg } = await uploadEgg(file, signature, { moved: line.moved, signal: control.signal });
      return [{ id }, egg.name || file.name, `${file.name}, ${bytes(egg.size)}`];
    });
  }

  async function packed(key) {
    close();
    body.dataset.empty = "";
    const { name: called } = twins.row(key);
    const line = progressLine(`Packing ${called}…`);
    fill(body, line.element);
    await hold(async () => {
      const { packed: done } = await operations.eggs.pack({ twin: key }, line.moved);
      return [{ path: done.path }, called, `as it is now, ${bytes(done.size)}`];
    });
  }

  /** Fills the slot with what `work` gives: what the daemon calls it, its title, and a line about it. */
  async function hold(work) {
    let found = null;
    const done = await attemptIn(errorPlace, async () => (found = await unlessCancelled(work)));
    if (!done || !found) return empty();
    const [egg, title, about] = found;
    self.egg = egg;
    element.classList.add("filled");
    const other = h(
      "button",
      { type: "button", class: "quiet", "aria-label": `${name}: take another` },
      "Take another",
    );
    other.addEventListener("click", () => {
      close();
      changed();
    });
    fill(body, h("p", {}, title), h("p", { class: "soft" }, about), other);
    changed();
  }

  function close() {
    control?.abort();
    if (self.egg?.id) discardEgg(self.egg.id);
    self.egg = null;
    empty();
  }

  empty();
  return self;
}

/** Differences as the daemon finds them between two eggs: facts, then files. */
export function differences(diff) {
  const { facts, files } = diff;
  return [
    h("p", { class: "diff-sum" }, summary(diff)),
    facts.length > 0 &&
      h(
        "dl",
        { class: "facts" },
        facts.map(({ what, before, after }) =>
          h(
            "div",
            {},
            h("dt", {}, what),
            h("dd", { title: before }, shortened(before), visuallyHidden(" before, ")),
            h("dd", { title: after }, shortened(after), visuallyHidden(" after")),
          ),
        ),
      ),
    files.map(fileDifference),
  ];
}

/** "2 changed, 1 added; 9 files the same." */
export function summary({ facts, files, same }) {
  if (!facts.length && !files.length) return `The same: ${count(same, "file")}.`;
  const kinds = ["changed", "added", "removed"]
    .map((what) => [what, files.filter((one) => one.what === what).length])
    .filter(([, number]) => number)
    .map(([what, number]) => `${number} ${what}`);
  const rest = same ? `; ${count(same, "file")} the same.` : ".";
  return `${kinds.join(", ") || "No file differs"}${rest}`;
}

/** A moment as people read it; of long keys their beginning. */
function shortened(value) {
  if (/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(value)) return `${onDay(value)} ${clock(value)}`;
  return value ? value.replace(/([0-9a-f]{8})[0-9a-f]{24,}/gi, "$1…") : "none";
}

const SIGNS = { changed: ["±", "warn"], added: ["+", "good"], removed: ["−", "bad"] };

function fileDifference({ target, role, what, before, after, text }) {
  const [sign, tone] = SIGNS[what];
  const sizes = [before, after].filter((size) => size !== null).map(bytes);
  const words = [
    h("span", { class: `sign ${tone}`, "aria-hidden": "true" }, sign),
    h("span", { class: "path" }, target),
    h("span", { class: "soft" }, `${what}, ${role}, ${sizes.join(" → ")}`),
  ];
  if (!text.length) return h("p", { class: "file-diff" }, words);
  const inside = h("div", {});
  const element = h("details", { class: "file-diff" }, h("summary", {}, words), inside);
  element.addEventListener("toggle", () => inside.childElementCount || fill(inside, sides(text, target)));
  return element;
}

async function unlessCancelled(work) {
  try {
    return await work();
  } catch (found) {
    if (found.name === "AbortError") return null;
    throw found;
  }
}
