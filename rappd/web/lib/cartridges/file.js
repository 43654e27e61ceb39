/** Reads and writes `.lispy.json` files; the same as `twins/cartridges/lispy_file.py`. */

import { BadCartridge } from "./problem.js";

export const TYPE = "lispy-cartridge";
const SCHEMA = "rappd-lispy/1.0";

const text = ["text", (value) => typeof value === "string"];
const flag = ["true or false", (value) => typeof value === "boolean"];
const count = ["a whole number", (value) => typeof value === "bigint" && value >= 0n];
const list = ["a list", Array.isArray];
const object = ["an object", (value) => value instanceof Map];
const texts = ["an object of texts", (value) => all(value, text[1])];
const objects = ["an object of objects", (value) => all(value, object[1])];
const orNull = ([what, test]) => [`${what} or null`, (value) => value === null || test(value)];
const exactly = (...values) => [values.join(" or "), (value) => values.includes(value)];

function all(value, test) {
  return value instanceof Map && [...value.values()].every(test);
}

const FIELDS = [
  ["_meta", object],
  ["_meta.type", exactly(TYPE)],
  ["_meta.version", exactly(1n)],
  ["_meta.format", text],
  ["_meta.agent_id", text],
  ["_meta.exported_at", orNull(text)],
  ["_meta.source_platform", orNull(text)],
  ["_meta.description", orNull(text)],
  ["_meta.bootable", flag],
  ["schema", exactly(SCHEMA)],
  ["env", object],
  ["env_wire", objects],
  ["programs", texts],
  ["entry", text],
  ["dialect", exactly("core", "rappterbook")],
  ["tools", objects],
  ["soul", orNull(text)],
  ["profile", orNull(object)],
  ["echoes", list],
  ["state_snapshot", orNull(object)],
  ["continuation", object],
  ["continuation.frame", count],
  ["continuation.pending_inputs", list],
  ["continuation.last_state", object],
  ["continuation.last_state.prev-result", object],
  ["continuation.image", orNull(object)],
];

/** Throws BadCartridge unless every field that has a name is what it should be. Gives the document. */
export function checked(document, name) {
  const meta = document.get("_meta");
  if (!(meta instanceof Map) || meta.get("type") !== TYPE)
    throw new BadCartridge(
      `${name} is no LisPy cartridge.`,
      "Drop it on Twins: it may be another kind of egg.",
    );
  for (const [path, [what, test]] of FIELDS) {
    const folders = path.split(".");
    const last = folders.pop();
    const inside = (found, key) => (found instanceof Map ? found.get(key) : undefined);
    const holder = folders.reduce(inside, document);
    if (holder instanceof Map && holder.has(last) && !test(holder.get(last)))
      throw new BadCartridge(`${name} cannot be opened: ${path} is not ${what}.`);
  }
  const entry = document.get("entry");
  if (entry !== undefined && !document.get("programs")?.has(entry))
    throw new BadCartridge(
      `${name} cannot be opened: its entry "${entry.slice(0, 60)}" is none of its programs.`,
    );
  return document;
}

/** Owner of the cartridge; "agent" by default. */
export const agentId = (document) => document.get("_meta").get("agent_id") || "agent";

/** The program that a frame runs; "" when there is none, or no telling which. */
export function entryOf(document) {
  const programs = document.get("programs") ?? new Map();
  const only = programs.size === 1 ? [...programs.keys()][0] : "";
  return document.get("entry") || (programs.has("main") ? "main" : only);
}

/** LisPy profile of its programs. */
export const dialectOf = (document) =>
  document.get("dialect") || (document.get("schema") === SCHEMA ? "core" : "rappterbook");

/** The same with every published field, in the published order, dated `now` (null: not dated). */
export function saved(document, now) {
  const meta = new Map([
    ["type", TYPE],
    ["version", 1n],
    ["format", ".lispy.json"],
    ["agent_id", "agent"],
    ["exported_at", null],
    ["source_platform", "rappd"],
    ["description", ""],
    ...document.get("_meta"),
  ]);
  if (now) meta.set("exported_at", moment(now)).set("source_platform", "rappd");
  const head = [
    ["_meta", meta],
    ["schema", SCHEMA],
    ["dialect", dialectOf(document)],
  ];
  const empty = ["env", "programs", "tools", "soul", "profile", "echoes", "state_snapshot"].map((key) => [
    key,
    { soul: "", echoes: [] }[key] ?? new Map(),
  ]);
  return new Map([...head, ...empty, ...document, ...head]);
}

/** `<agent>-<YYYYmmddTHHMMSSZ>.lispy.json`, of letters that every disk takes. */
export function fileName(document, now) {
  const name = agentId(document)
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[\u0300-\u036f'’]/g, "")
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 60)
    .replace(/^-+|-+$/g, "");
  return `${name || "agent"}-${moment(now).replace(/[-:]/g, "")}.lispy.json`;
}

const moment = (when) => `${when.toISOString().slice(0, 19)}Z`;
