/** A plan's rows: what would become of an egg's files, each row opening to their paths. */

import { bytes, count } from "../../lib/format.js";
import { fill, h } from "../../lib/dom.js";

const MOST_PATHS = 1000;
const CODE = ["agent", "service", "slot"];
const ROLES = {
  identity: ["rappid"],
  soul: ["soul"],
  memory: ["memory file", "memory files"],
  conversations: ["conversations"],
  page: ["page file", "page files"],
  workflow: ["workflow", "workflows"],
  rules: ["rules file", "rules files"],
  env: [".env"],
  roster: ["roster", "rosters"],
  other: ["other file", "other files"],
};
const CATEGORIES = {
  soul: "soul",
  agent: "agents",
  service: "services",
  slot: "slots",
  workflow: "agents",
  rules: "agents",
  memory: "memory",
  other: "memory",
  roster: "memory",
  env: "env",
  page: "pages",
};
const TITLES = {
  create: "New",
  replace: "Replaced",
  keep: "Unchanged",
  quarantine: "Needs your approval",
  refuse: "Rejected",
};
const SAME = "the same is there";
const NEVER = ["bonds.json"]; // a twin's history is never overwritten

const shown = (plan) => Object.keys(TITLES).filter((action) => plan[action].count);

/** A row for each action that the plan has files for. */
export const planRows = (plan) => h("div", { class: "plan" }, shown(plan).map((action) => row(action, plan[action])));

/** The rows as a screen reader says them: "New 1, Unchanged 2". */
export const spokenRows = (plan) => shown(plan).map((action) => `${TITLES[action]} ${plan[action].count}`).join(", ");

/** True if every file of the egg is already here, unchanged. */
export const isHere = ({ keep, refuse }) => !refuse.count && keep.files.every(({ why }) => why === SAME);

/** Files here that differ from the egg's and may be overwritten: `Map` of category → number of files. */
function differing({ keep }) {
  const found = new Map();
  for (const { path, role, why } of keep.files) {
    const category = CATEGORIES[role];
    if (!category || why === SAME || NEVER.includes(path)) continue;
    found.set(category, (found.get(category) ?? 0) + 1);
  }
  return found;
}

function row(action, group) {
  const words = [
    h("span", { class: "plan-verb" }, TITLES[action]),
    h("span", { class: "plan-count" }, String(group.count)),
    h("span", { class: "plan-about" }, ABOUT[action](group)),
  ];
  const inside = h("div", {});
  const element = h("details", { class: `plan-row ${action}` }, h("summary", {}, words), inside);
  element.addEventListener("toggle", () => inside.childElementCount || fill(inside, paths(group.files)));
  return element;
}

const ABOUT = {
  create: ({ roles }) => inWords(roles),
  replace: ({ roles }) => `${inWords(roles)}; yours are kept for an undo`,
  keep: ({ files }) => {
    const same = files.filter(({ why }) => why === SAME).length;
    const others = files.length - same;
    const differ = others === 1 ? "differs and stays" : "differ and stay";
    const of = same || others === 1 ? `${others} of ` : "";
    return [others && `${of}yours ${differ}`, same && `${same} ${same === 1 ? "is" : "are"} the same`]
      .filter(Boolean)
      .join(", ");
  },
  quarantine: ({ roles }) =>
    `${inWords(roles)}: kept, not ${roles.env ? "used" : "run"}, until you read and approve`,
  refuse: () => "they stay in the egg",
};

function paths(files) {
  return [
    h(
      "ul",
      { class: "paths" },
      files
        .slice(0, MOST_PATHS)
        .map(({ path, role, size, why }) =>
          h(
            "li",
            {},
            h("span", { class: "path" }, path),
            h("span", { class: "soft" }, [role, bytes(size), why].filter(Boolean).join(", ")),
          ),
        ),
    ),
    files.length > MOST_PATHS && h("p", { class: "soft" }, `and ${files.length - MOST_PATHS} more`),
  ];
}

/** "soul, 131 memory files, 5 code files" */
function inWords(roles) {
  const words = Object.entries(ROLES)
    .filter(([role]) => roles[role])
    .map(([role, [one, many]]) => (many ? count(roles[role], one, many) : one));
  const code = CODE.reduce((sum, role) => sum + (roles[role] ?? 0), 0);
  if (code) words.push(count(code, "code file"));
  return words.join(", ");
}

const CHOICE_LABELS = { env: ".env", slots: "senses" };

/**
 * `chosen` is a set of what shall be replaced; what is chosen changes it, and `again()` asks for the plan
 * anew. Null when nothing of yours differs. When there is no new plan, the choice is taken back.
 */
export function overwriteChoices(plan, chosen, again) {
  const offered = new Map([...differing(plan), ...[...chosen].map((name) => [name, 0])]);
  if (!offered.size) return null;
  return h(
    "fieldset",
    { class: "choices" },
    h("legend", {}, "Replace yours with the egg's"),
    [...offered].map(([name, files]) => {
      const id = `overwrite-${name}`;
      const box = h("input", { type: "checkbox", id });
      box.checked = chosen.has(name);
      box.addEventListener("change", async () => {
        const was = !box.checked;
        if (box.checked) chosen.add(name);
        else chosen.delete(name);
        if (await again()) return;
        if (was) chosen.add(name);
        else chosen.delete(name);
        box.checked = was;
      });
      return h(
        "label",
        { class: "choice-line", for: id },
        box,
        h(
          "span",
          {},
          CHOICE_LABELS[name] ?? name,
          files > 1 && h("span", { class: "soft" }, ` ${count(files, "file")}`),
        ),
      );
    }),
  );
}
