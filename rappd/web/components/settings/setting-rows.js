/** Every setting of the daemon by name: its value, where that comes from, and a way to change it. */

import { staleList } from "../ui/stale-list.js";
import { daemon } from "../../lib/daemon-state.js";
import { h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

const ELSEWHERE = new Set(["voice_mode", "twin_mode"]);
const PROGRAMS = "programs."; // have a section of their own
const GROUPS = {
  "": "This machine",
  provider: "Model server",
  models: "Models",
  github: "GitHub",
  azure: "Azure OpenAI",
  agents: "Agents",
  brainstem: "Turns",
  store: "Store",
  http: "Page and HTTP",
  eggs: "Eggs",
  peers: "Other machines",
  listen: "Listening",
  legacy: "Legacy listener",
  tether: "Phones",
  neighborhood: "Neighborhood",
  estate: "Estate",
  notify: "Notices",
  timers: "Timers",
  organism: "Listeners",
};

/** The settings in folded groups by the first part of their names; `reveal(name)` opens and focuses one. */
export function allSettings() {
  const place = h("div", {});
  const page = { opened: new Set(), drafts: new Map() }; // what outlives a redrawing
  const list = staleList(place, {
    name: "settings",
    load: async () => (await operations.settings.list()).settings,
    draw: (settings) => {
      requestAnimationFrame(show);
      return groups(settings, page, list);
    },
  });
  let wanted = "";
  const show = () => {
    const input = wanted && place.querySelector(`#${CSS.escape(`setting-${wanted}`)}`);
    if (!input) return;
    wanted = "";
    input.closest("details").open = true;
    input.scrollIntoView({ block: "center" });
    input.focus();
  };
  const reveal = (name) => {
    wanted = name;
    show();
  };
  return { element: place, close: list.close, reveal };
}

/** The settings whose names begin with `beginning`, one below the other. `close()` when done. */
export function settingsBelow(beginning) {
  const place = h("div", {});
  const page = { opened: new Set(), drafts: new Map() };
  const list = staleList(place, {
    name: `settings ${beginning}`,
    load: async () => (await operations.settings.list()).settings.filter(({ name }) => name.startsWith(beginning)),
    draw: (settings) => settings.map((setting) => row(setting, page, list)),
  });
  return { element: place, close: list.close };
}

function groups(settings, page, list) {
  const byGroup = new Map();
  for (const setting of settings) {
    if (ELSEWHERE.has(setting.name) || setting.name.startsWith(PROGRAMS)) continue;
    const group = setting.name.includes(".") ? setting.name.split(".")[0] : "";
    byGroup.set(group, [...(byGroup.get(group) ?? []), setting]);
  }
  return [...byGroup].map(([group, some]) => {
    const changed = some.filter(({ from }) => from && from !== "default").length;
    const element = h(
      "details",
      { class: "source", open: page.opened.has(group) },
      h(
        "summary",
        {},
        h("span", {}, GROUPS[group] ?? group),
        changed > 0 && h("span", { class: "soft" }, `${changed} set`),
      ),
      h("div", { class: "source-inside" }, some.map((setting) => row(setting, page, list))),
    );
    element.addEventListener("toggle", () =>
      element.open ? page.opened.add(group) : page.opened.delete(group),
    );
    return element;
  });
}

function row(setting, page, list) {
  const errorPlace = h("div", {});
  const label = h(
    "span",
    {},
    titleOf(setting),
    h("span", { class: "soft help" }, [setting.about ?? setting.help, origin(setting)].filter(Boolean).join(" ")),
    h("code", { class: "raw-name" }, setting.choices?.length ? `${setting.name} = ${setting.value}` : setting.name),
  );
  const change = async (value) => {
    const worked = await attemptIn(errorPlace, () => operations.settings.set({ name: setting.name, value }));
    if (!worked) return false;
    const before = String(setting.value ?? "");
    const actions = setting.secret
      ? []
      : [
          {
            label: "Undo",
            run: () =>
              attemptIn(errorPlace, () => operations.settings.set({ name: setting.name, value: before })).then(
                list.refresh,
              ),
          },
        ];
    toast(
      setting.live === false
        ? `${titleOf(setting)} saved; it counts from the next start.`
        : `${titleOf(setting)} saved.`,
      { actions },
    );
    list.refresh();
    daemon.look();
    return true;
  };
  if (setting.from === "environment") {
    return h("div", { class: "choice" }, label, h("p", {}, wordsOf(setting, setting.value) || "empty"));
  }
  if (setting.kind === "switch") return h("div", {}, onOff(setting, label, change), errorPlace);
  return h(
    "div",
    {},
    setting.choices?.length ? choice(setting, label, change) : field(setting, label, page.drafts, change),
    errorPlace,
  );
}

const titleOf = ({ title, name }) => title ?? name;

const wordsOf = ({ choice_words: words }, value) => words?.[value] ?? value;

function onOff(setting, label, change) {
  const input = h("input", { type: "checkbox", role: "switch", id: `setting-${setting.name}` });
  const isOn = ["on", "true", "1", "yes"].includes(String(setting.value).toLowerCase());
  input.checked = isOn;
  input.addEventListener("change", async () => {
    if (!(await change(input.checked ? "on" : "off"))) input.checked = isOn;
  });
  return h("label", { class: "switch" }, label, input);
}

function choice(setting, label, change) {
  const id = `setting-${setting.name}`;
  const select = h(
    "select",
    { id },
    setting.choices.map((value) => h("option", { value, selected: value === setting.value }, wordsOf(setting, value))),
  );
  select.addEventListener("change", async () => {
    if (!(await change(select.value))) select.value = setting.value;
  });
  return h("div", { class: "choice" }, h("label", { for: id }, label), select);
}

function field(setting, label, drafts, change) {
  const id = `setting-${setting.name}`;
  const input = h("input", {
    id,
    type: setting.secret ? "password" : "text",
    inputmode: setting.kind === "number" ? "decimal" : null,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: setting.secret && setting.value ? "set; type to replace" : "",
    value: setting.secret ? "" : setting.value,
  });
  const save = h(
    "button",
    { type: "submit", class: "secondary", hidden: true, "aria-label": `Save ${titleOf(setting)}` },
    "Save",
  );
  const draw = () => {
    save.hidden = input.value === input.defaultValue;
    if (save.hidden) drafts.delete(setting.name);
    else drafts.set(setting.name, input.value);
  };
  input.value = drafts.get(setting.name) ?? input.defaultValue;
  draw();
  input.addEventListener("input", draw);
  const form = h(
    "form",
    { class: "choice" },
    h("label", { for: id }, label),
    h("div", { class: "field-row" }, input, save),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (save.hidden) return;
    drafts.delete(setting.name);
    if (!(await change(input.value))) draw();
  });
  return form;
}

function origin({ from, variable }) {
  if (!from || from === "default") return "";
  if (from === "environment") return `Set by ${variable} in the environment; change it there.`;
  return `Set by ${from}.`;
}
