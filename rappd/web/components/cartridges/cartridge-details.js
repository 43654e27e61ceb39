/** Details of a cartridge, and the text of its program. */

import { runs, signed } from "./cartridge-words.js";
import { count, onDay, joinNames } from "../../lib/format.js";
import { fill, h } from "../../lib/dom.js";
import { entryOf } from "../../lib/cartridges/file.js";

const TOLD = 600;

/** The head: name, description, where it comes from, who signed it, what was changed by hand. */
export function cartridgeHead(cartridge) {
  const facts = h("div", { class: "cartridge-facts" });
  const draw = () => {
    const meta = cartridge.document.get("_meta");
    const frame = Number(cartridge.document.get("continuation")?.get("frame") ?? 0n);
    const at = Date.parse(meta.get("exported_at") ?? "");
    const tools = [...(cartridge.document.get("tools")?.keys() ?? [])];
    const done = cartridge.underWay ? `run ${frame + 1} under way` : runs(frame);
    const about = ["A LisPy program", done, at && `saved ${onDay(at)}`].filter(Boolean).join(", ");
    fill(
      facts,
      said(meta.get("description")),
      h("p", { class: "soft" }, about),
      tools.length > 0 &&
        h("p", { class: "soft" }, `Carries ${count(tools.length, "tool")}: ${joinNames(tools, 5)}`),
      h("p", {}, signed(cartridge.signer)),
      [...new Set([...cartridge.said, ...cartridge.notes])].map((note) =>
        h("p", {}, h("span", { class: "sign warn" }, "! "), note),
      ),
    );
  };
  draw();
  return { element: h("div", {}, h("h2", { tabindex: -1 }, cartridge.name), facts), draw };
}

/** Every program, the one that runs first and open; what it knows, and its soul. */
export function cartridgeText(cartridge) {
  const { document } = cartridge;
  const entry = entryOf(document);
  const programs = [...(document.get("programs") ?? [])];
  const first = programs.filter(([name]) => name === entry);
  const rest = programs.filter(([name]) => name !== entry);
  const soul = document.get("soul");
  return h(
    "section",
    { class: "group" },
    h("h2", {}, "Its program"),
    !programs.length && h("p", { class: "soft" }, "It holds no program; it can be kept, not run."),
    [...first, ...rest].map(([name, source]) => fold(name, source, name === entry)),
    soul && fold("Its soul", soul, false),
  );
}

const said = (description) => description && h("p", {}, description.slice(0, TOLD));

const fold = (title, text, open) =>
  h(
    "details",
    { class: "fold", open },
    h("summary", {}, title),
    h("pre", { class: "log", tabindex: 0, role: "region", "aria-label": title }, text),
  );
