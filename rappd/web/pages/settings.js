/** Settings: model, voice, sources, programs, shortcuts, and this page itself. */

import { sourceList } from "../components/agents/agent-sources.js";
import { canListen, canSpeak } from "../components/chat/voice.js";
import { openShortcuts, shortcutsSwitch } from "../components/layout/keyboard-shortcuts.js";
import { operatorNotice } from "../components/layout/operator-notice.js";
import { themeChoice } from "../components/layout/theme.js";
import { serverCards } from "../components/models/server-cards.js";
import { programsView } from "../components/programs/programs-view.js";
import { allSettings } from "../components/settings/setting-rows.js";
import { attemptIn } from "../components/ui/problem.js";
import { get, post } from "../lib/api.js";
import { daemon } from "../lib/daemon-state.js";
import { actionButton, fill, h, withCode } from "../lib/dom.js";

export function mount(main, { pages }) {
  const body = h("div", {});
  const column = h(
    "div",
    { class: "column" },
    h("header", { class: "head" }, h("h1", { tabindex: -1 }, "Settings")),
    body,
  );
  fill(main, h("section", { class: "page" }, column));
  let open = [];

  const draw = () => {
    const { operator } = daemon;
    for (const part of open) part.close?.();
    open = operator
      ? [
          serverCards(),
          modeSwitch("voice"),
          modeSwitch("twin"),
          sourceList(),
          programsView(),
          allSettings(),
        ]
      : [];
    fill(body, operator ? whole(open) : [thinkingNow()], thisPage(operator, pages));
  };
  daemon.addEventListener("operator", draw);
  draw();
  return {
    go([name]) {
      if (name === "connect") open[0]?.reveal();
      else if (name?.startsWith("programs")) open.at(-2)?.reveal(name);
      else if (name) open.at(-1)?.reveal(name); // the last has all settings
    },
    close() {
      daemon.removeEventListener("operator", draw);
      for (const part of open) part.close?.();
    },
  };
}

function whole([servers, voice, twin, repos, programs, all]) {
  return [
    h("section", { class: "group" }, h("h2", {}, "Where answers come from"), servers.element),
    h("section", { class: "group" }, h("h2", {}, "Voice"), voice.element, voiceNote(), twin.element),
    h("section", { class: "group" }, h("h2", {}, "Sources"), repos.element),
    h("section", { class: "group" }, h("h2", {}, "Programs"), programs.element),
    h("section", { class: "group" }, h("h2", {}, "All settings"), all.element),
  ];
}

function thinkingNow() {
  return h(
    "section",
    { class: "group" },
    h("h2", {}, "Where answers come from"),
    h("p", {}, daemon.thinking || "Unknown yet."),
    operatorNotice("change settings"),
  );
}

function thisPage(operator, pages) {
  const errorPlace = h("div", {});
  return h(
    "section",
    { class: "group" },
    h("h2", {}, "This page"),
    themeChoice(),
    shortcutsSwitch(),
    h(
      "div",
      { class: "setting" },
      h("div", {}, h("p", {}, "Keyboard shortcuts")),
      actionButton("Show shortcuts", () => openShortcuts(pages)),
    ),
    operator &&
      h(
        "div",
        { class: "setting" },
        h(
          "div",
          {},
          h("p", {}, "This browser may change things here"),
          h("p", { class: "soft" }, "Signed in as administrator. After signing out you can still chat."),
        ),
        actionButton("Sign out of this browser", () => attemptIn(errorPlace, () => daemon.close())),
      ),
    errorPlace,
  );
}

const MODES = {
  voice: {
    key: "voice_mode",
    title: "Voice mode",
    help: "Answers are read aloud. What you say is sent when you pause.",
  },
  twin: { key: "twin_mode", title: "Twin's comment", help: "Show your twin's comment under each answer." },
};

/** The switch of a mode. */
function modeSwitch(mode) {
  const { key, title, help } = MODES[mode];
  const errorPlace = h("div", {});
  const field = h("input", { type: "checkbox", role: "switch" });
  const read = async () => {
    field.checked = Boolean((await get(`/${mode}`))[key]);
  };
  field.addEventListener("change", async () => {
    const wanted = field.checked;
    if (!(await attemptIn(errorPlace, () => post(`/${mode}/toggle`, { enabled: wanted }))))
      field.checked = !wanted;
    daemon.look();
  });
  attemptIn(errorPlace, read);
  return {
    element: h(
      "div",
      {},
      h("label", { class: "switch" }, h("span", {}, title, h("span", { class: "soft help" }, help)), field),
      errorPlace,
    ),
  };
}

/** Note on the browser's speech support and where the sound is sent. */
function voiceNote() {
  const lines = [];
  if (!canSpeak) lines.push("This browser can't read aloud.");
  if (!canListen)
    lines.push("This browser can't listen; the keyboard's microphone, where there is one, works.");
  else
    lines.push(
      "The microphone uses this browser's speech service. Some browsers send the sound to their maker.",
    );
  return h("p", { class: "soft" }, withCode(lines.join(" ")));
}
