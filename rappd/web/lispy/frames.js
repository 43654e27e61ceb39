/**
 * Frames of the control stack and their fields: an Array of its kind, then its fields in the
 * order given here. `list` and `map` are the program's own values, `own` is an Array that nothing else holds.
 */

const LAYOUTS = [
  ["call", { form: "list", scope: "scope", done: "own" }],
  ["body", { form: "list", next: "number", scope: "scope" }],
  ["sequence", { form: "list", next: "number", scope: "scope" }],
  ["if", { form: "list", scope: "scope" }],
  ["cond", { form: "list", next: "number", scope: "scope" }],
  ["define", { form: "list", scope: "scope" }],
  ["set!", { form: "list", scope: "scope" }],
  ["let", { form: "list", scope: "scope", done: "own" }],
  ["let*", { form: "list", next: "number", scope: "scope" }],
  ["and", { form: "list", next: "number", scope: "scope" }],
  ["or", { form: "list", next: "number", scope: "scope" }],
  ["expand", { scope: "scope" }],
  ["when", { form: "list", scope: "scope" }],
  ["unless", { form: "list", scope: "scope" }],
  ["pipe", { form: "list", next: "number", scope: "scope" }],
  ["dotimes", { form: "list", scope: "scope", next: "number", count: "number" }],
  ["compose", { procedures: "own", next: "number" }],
  ["complement", {}],
  ["map", { procedure: "value", lists: "own", next: "number", done: "own" }],
  ["for-each", { procedure: "value", lists: "own", next: "number" }],
  ["filter", { procedure: "value", items: "list", next: "number", done: "own" }],
  ["reduce", { procedure: "value", items: "list", next: "number" }],
  [
    "sort",
    { procedure: "value", items: "list", done: "own", width: "number", left: "number", right: "number" },
  ],
  ["dict-map", { procedure: "value", map: "map", keys: "own", done: "own" }],
  ["dict-filter", { procedure: "value", map: "map", keys: "own", done: "own" }],
];

/** Name and fields of each kind, as an image has them. */
export const FIELDS = LAYOUTS.map(([name, fields]) => ({ name, fields: Object.entries(fields) }));

export const [CALL, BODY, SEQUENCE, IF, COND, DEFINE, SET, LET, LET_STAR, AND, OR, EXPAND] = LAYOUTS.keys();
export const [WHEN, UNLESS, PIPE, DOTIMES] = [12, 13, 14, 15];
export const [COMPOSE, COMPLEMENT, MAP, FOR_EACH, FILTER, REDUCE, SORT, DICT_MAP, DICT_FILTER] = [
  16, 17, 18, 19, 20, 21, 22, 23, 24,
];
