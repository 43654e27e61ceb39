/** Voice mode and twin mode: what answers carry beside their text. */

import { get, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { h, withCode } from "../../lib/dom.js";
import { attemptIn } from "../ui/problem.js";
import { canListen, canSpeak } from "./voice.js";

const MODES = {
  voice: {
    key: "voice_mode",
    title: "Voice mode",
    help: "Answers are read aloud. What you say is sent when you pause.",
  },
  twin: { key: "twin_mode", title: "Twin's comment", help: "Show your twin's comment under each answer." },
};

/** The switch of a mode. */
export function modeSwitch(mode) {
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
export function voiceNote() {
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
