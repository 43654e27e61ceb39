/**
 * Eggs packed from here: each twin's latest, how to save it, and how to drag it out.
 *
 * Chromium's browsers fetch what is dragged out of them from an address, so the egg must be packed before
 * the drag begins: the first drag of a card packs, the next one carries. Other browsers cannot; they save.
 */

import { Problem } from "../../lib/api.js";
import * as operations from "../../lib/operations.js";
import { signedLink } from "../../lib/operator-key.js";
import { bytes, clock, count, joinNames } from "../../lib/format.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import { secretFindings } from "./secret-findings.js";
import { attemptIn, problemView } from "../ui/problem.js";
import { progressLine } from "../ui/progress.js";
import { announce } from "../../lib/live-region.js";

const LINK_MS = 55 * 60_000;

const canDragOut =
  Boolean(navigator.userAgentData?.brands?.some(isChromium)) && matchMedia("(pointer: fine)").matches;

const packed = new Map(); // twin's key → Egg

/** The latest egg of a twin: "none", "packing", "ready" or "failed". Says `change`, and `moved` while it packs. */
class Egg extends EventTarget {
  state = "none";
  problem = null;
  packed = null;
  link = "";
  dragLink = ""; // a drag tells the address at once, so it is signed before
  at = 0;
  row = null;
  far = null; // the latest event
  work = "";

  /** `allow`: ids of likely secrets that may travel. */
  async pack(row, allow = []) {
    this.row = row;
    if (this.state === "packing") return;
    this.work = crypto.randomUUID();
    this.#set({ state: "packing", name: `${fileName(row.name)}.egg` });
    try {
      const json = { twin: row.key, work: this.work, ...(allow.length > 0 && { allow }) };
      const answer = await operations.eggs.pack(json, (far) => this.#moved(far));
      this.link = answer.link ?? "";
      await this.renewDragLink();
      this.#set({ state: "ready", at: Date.now(), packed: answer.packed });
      announce(`${this.name} is packed, ${bytes(answer.packed.size)}.`);
    } catch (found) {
      if (!(found instanceof Problem)) throw found;
      if (found.code === "cancelled") {
        announce(found.message);
        this.#set({ state: "none" });
      } else this.#set({ state: "failed", problem: found });
    }
  }

  /** Stops packing; the file that was begun is gone then. */
  async cancel() {
    try {
      await operations.eggs.cancel({ work: this.work });
    } catch (found) {
      if (!(found instanceof Problem)) throw found; // it is packed by now, which the line says
    }
  }

  forget() {
    this.#set({ state: "none" });
  }

  /** True while the egg can be fetched and the twin has not chatted since. */
  isFresh(row) {
    const { state, at } = this;
    return state === "ready" && Date.now() - at < LINK_MS && (row.last_talk ?? 0) * 1000 < at;
  }

  async renewDragLink() {
    this.dragLink = "";
    if (this.link) this.dragLink = await signedLink(this.link);
  }

  save() {
    return saveLaid(this.packed.path, this.name);
  }

  #moved(far) {
    this.far = far;
    this.dispatchEvent(new Event("moved"));
  }

  #set(changes) {
    Object.assign(this, { far: null }, changes);
    this.dispatchEvent(new Event("change"));
  }
}

/** Saves an egg that the daemon packed, at `path` among its eggs, under `filename`. */
export function saveLaid(path, filename) {
  const [folder, name] = path.split("/").slice(-2);
  return operations.eggs.save({ folder, name }, filename);
}

/** The egg of a twin. */
export function eggOf(key) {
  if (!packed.has(key)) packed.set(key, new Egg());
  return packed.get(key);
}

/** Lets `element`, the card of the twin that `row()` gives, be dragged out of the page. */
export function dragsOut(element, row) {
  if (!canDragOut) return;
  element.draggable = true;
  element.addEventListener("dragstart", (event) => {
    const twin = row();
    const egg = eggOf(twin.key);
    if (!egg.isFresh(twin) || !egg.dragLink) {
      event.preventDefault();
      egg.pack(twin);
      return;
    }
    const address = new URL(egg.dragLink, location.href);
    egg.renewDragLink(); // one is good for one fetch
    event.dataTransfer.setData("DownloadURL", `application/octet-stream:${egg.name}:${address}`);
    event.dataTransfer.effectAllowed = "copy";
  });
}

/** State of a twin's egg: being packed, ready to save, or failed. `close()` when done. */
export function eggLine(key) {
  const egg = eggOf(key);
  const element = h("div", { class: "egg-line", role: "group", "aria-label": "Egg" });
  let line = null;
  const move = () => egg.far && line?.moved(egg.far);
  const draw = () => {
    element.hidden = egg.state === "none";
    line = egg.state === "packing" ? progressLine(`Packing ${egg.name}…`, { cancel: () => egg.cancel() }) : null;
    if (line) toldOf ||= egg.work;
    fill(element, line ? [line.element, toldOf === egg.work && h("p", { class: "soft" }, NEVER_READ)] : LINES[egg.state]?.(egg));
    move();
  };
  egg.addEventListener("change", draw);
  egg.addEventListener("moved", move);
  draw();
  return {
    element,
    close() {
      egg.removeEventListener("change", draw);
      egg.removeEventListener("moved", move);
    },
  };
}

const NEVER_READ =
  "The secret scan cannot read pictures, sound, documents, encrypted files and most archives and databases; " +
  "it understands English and German.";
let toldOf = ""; // the work whose line says so: it is said once

const LINES = {
  failed: (egg) =>
    egg.problem.findings.length
      ? secretFindings(egg.problem.findings, {
          pack: (allow) => egg.pack(egg.row, allow),
          dismiss: () => egg.forget(),
        })
      : problemView(egg.problem, { dismiss: () => egg.forget() }),
  ready: (egg) => {
    const { size, files, left_out: left, unread = {} } = egg.packed;
    const kinds = Object.entries(unread).map(([kind, number]) => `${number} × ${kind}`);
    const errorPlace = h("div", {});
    return [
      h(
        "div",
        { class: "egg-ready" },
        icon("mark", "mark"),
        h(
          "div",
          { class: "egg-words" },
          h("p", {}, egg.name),
          h(
            "p",
            { class: "soft" },
            `${bytes(size)}, ${count(files, "file")}, packed ${clock(egg.at)}. `,
            canDragOut ? "Drag the card to where you want it, or save it." : "",
          ),
          kinds.length > 0 && h("p", { class: "soft" }, `Not scanned for secrets: ${kinds.join(", ")}.`),
          left.length > 0 &&
            h("p", { class: "soft" }, `Left out: ${joinNames(left.map(({ path }) => path))}.`),
        ),
        actionButton(
          "Save",
          () => attemptIn(errorPlace, () => egg.save()),
          "secondary",
          { "aria-label": `Save ${egg.name}` },
        ),
        actionButton(icon("close"), () => egg.forget(), "quiet only-icon", { "aria-label": "Put away" }),
      ),
      errorPlace,
    ];
  },
};

/** A twin's name as every system allows it for a file. */
const fileName = (name) =>
  name
    .replace(/[\u0000-\u001f\u007f<>:"/\\|?*]+/g, "_")
    .replace(/^[. ]+|[. ]+$/g, "")
    .slice(0, 80) || "twin";

function isChromium({ brand }) {
  return brand === "Chromium";
}
