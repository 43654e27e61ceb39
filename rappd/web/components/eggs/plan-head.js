/** Head of a plan: the egg's kind, integrity, signature and warnings. */

import { bytes, count, onDay, stripControl, withArticle } from "../../lib/format.js";
import { h } from "../../lib/dom.js";
import { kindOf } from "./egg-kinds.js";

/** Of a plan, and of the egg as it was looked at. */
export function planHead({ egg: who, seal, notes, permissions, variables = [], answer }, egg) {
  const packed =
    who.packed_at && `packed ${onDay(who.packed_at)}${who.packed_by ? ` by ${quoted(who.packed_by)}` : ""}`;
  return h(
    "div",
    { class: "plan-head" },
    h("p", {}, [withArticle(kindOf(who.kind)), bytes(who.size), packed].filter(Boolean).join(", ")),
    h("p", {}, whole(egg)),
    h("p", {}, signed(seal)),
    notes.map((note) => h("p", { class: "soft" }, h("span", { class: "sign warn" }, "! "), note)),
    answer && h("p", { class: "told" }, answer),
    variables.map(ofEnv),
    permissions.length > 0 &&
      h(
        "details",
        { class: "fold" },
        h("summary", {}, reach(permissions)),
        h(
          "ul",
          { class: "paths" },
          permissions.map(({ path, wants, may }) =>
            h(
              "li",
              {},
              h("span", { class: "path" }, path),
              h("span", {}, may.join("; ")),
              wants.length > 0 && h("span", { class: "soft" }, `seen in its text: ${wants.join(", ")}`),
            ),
          ),
        ),
      ),
  );
}

/** "Its code uses its own storage alone; reads ~/Pictures": each phrase once. */
const reach = (permissions) =>
  `Its code ${[...new Set(permissions.flatMap(({ may }) => may))].map(stripControl).join("; ")}`;

/** The names that a `.env` of the egg sets; their values are not shown. */
function ofEnv({ path, names, never_taken: never, problem }) {
  const warn = () => h("span", { class: "sign warn" }, "! ");
  return [
    problem && h("p", { class: "soft" }, warn(), problem),
    names.length > 0 && h("p", { class: "soft" }, `${path} sets ${names.join(", ")}`),
    never.length > 0 &&
      h("p", { class: "soft" }, warn(), `${path} sets what is never taken from it: ${never.join(", ")}`),
  ];
}

function whole({ whole: is, listed, parts }) {
  if (is) return [h("span", { class: "sign good" }, "✓ "), complete(listed)];
  const known = listed ? `${listed} of them with a hash` : "it carries no hashes";
  return [h("span", { class: "sign warn" }, "! "), `Readable: ${count(parts.length, "file")}; ${known}`];
}

/** The daemon's sentence about the signer, the one that the command line shows. */
function signed({ standing, signed: sentence }) {
  const sure = standing === "self" || standing === "trusted";
  const text = stripControl(sentence).replace(/^./, (first) => first.toUpperCase());
  return [
    h("span", { class: sure ? "sign good" : "sign warn" }, sure ? "✓ " : "! "),
    standing === "unknown" ? `${text}. Its code will not run until you approve it.` : text,
  ];
}

/** The egg's own claims, which prove nothing. */
const quoted = (text) => `"${stripControl(text).replaceAll('"', "'")}"`;

const complete = (files) =>
  files === 1 ? "Complete: its file matches its hash" : `Complete: all ${files} files match their hashes`;
