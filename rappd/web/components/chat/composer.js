/** The message box: grows with the text, stores drafts, sends on Enter, takes dictation where the browser can. */

import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import { store, stored } from "../../lib/storage.js";
import { draftOf } from "./chat-target.js";
import { announce } from "../../lib/live-region.js";
import { send, stop } from "./turn-request.js";
import { twins } from "../twins/twins-state.js";
import { canListen, stopSpeaking, listen, speaking } from "./voice.js";

const SPOKEN_NOTE = "speech-note";

/** The form of a conversation; `sent()` is called after sending. With `camera` it takes pictures. `close()` when it leaves the page. */
export function composer(conversation, { sent, camera = false }) {
  const draft = draftOf(conversation.key);
  const field = h("textarea", {
    id: "write",
    rows: 1,
    autocomplete: "off",
    enterkeyhint: "send",
    "aria-describedby": "write-note",
  });
  const label = h("label", { for: "write", class: "visually-hidden" });
  const note = h("p", { id: "write-note", class: "soft note", role: "status" });
  const main = h("button", { type: "submit", class: "primary" });
  const microphone =
    canListen &&
    h("button", { type: "button", class: "quiet only-icon", "aria-pressed": "false" }, icon("microphone"));
  const quiet = actionButton("Stop reading", stopSpeaking, "quiet", { hidden: true });
  const files = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to attach" });
  const taken = camera && h("input", { type: "file", accept: "image/*", capture: "environment", hidden: true, "aria-label": "Picture that was taken" });
  const shutter =
    camera &&
    h(
      "button",
      { type: "button", class: "quiet only-icon", "aria-label": "Take a picture", title: "Take a picture", onclick: () => taken.click() },
      icon("camera"),
    );
  const clip = h(
    "button",
    { type: "button", class: "quiet only-icon", "aria-label": "Attach files", title: "Attach files" },
    icon("clip"),
  );
  const form = h(
    "form",
    { class: "composer" },
    label,
    field,
    h("div", { class: "composer-buttons" }, quiet, files, taken, shutter, clip, microphone, main),
  );
  let attached = null; // the list of files, once there was one
  let attaching = null; // the promise of files that are being read

  const tell = (text, about = "") => {
    note.dataset.about = about;
    fill(note, text);
  };
  const draw = () => {
    const busy = Boolean(conversation.current);
    const verb = busy ? "Stop" : "Send";
    fill(label, `Ask ${conversation.name}`);
    field.placeholder = `Ask ${conversation.name}…`;
    if (main.textContent !== verb) fill(main, verb);
    main.classList.toggle("secondary", busy);
    main.classList.toggle("primary", !busy);
    if (!busy && note.dataset.about === "busy") tell("");
    main.disabled = conversation.current?.state === "stopping";
  };
  const put = (text) => {
    field.value = text;
    store(draft, text || null);
    grow(field);
  };
  const submit = async () => {
    if (attaching && !(await attaching)) return; // what was to go along does not: whether the rest goes is to be seen first
    const text = field.value.trim();
    if (conversation.current) {
      tell(`${conversation.name} is answering. Stop it, or wait; your text is kept.`, "busy");
      return;
    }
    if (!text && !attached?.count) return;
    stopSpeaking();
    const pictures = attached?.pictures ?? [];
    send(conversation, attached?.count ? attached.with(text) : text, { pictures });
    attached?.clear();
    put("");
    tell("");
    sent();
  };

  const read = async (some) => {
    const { attachmentList } = await import("../attachments/attachments.js");
    if (!attached) {
      attached = attachmentList({ model: () => conversation.model, changed: () => field.focus() });
      form.before(attached.element);
    }
    return attached.add(some);
  };
  /** True once all files are attached; a sentence waits for that. */
  const attach = async (some) => {
    const mine = (attaching = read(some));
    const all = await mine;
    if (attaching === mine) attaching = null;
    return all;
  };
  clip.addEventListener("click", () => files.click());
  for (const chosen of [files, taken].filter(Boolean))
    chosen.addEventListener("change", async () => {
      await attach([...chosen.files]);
      chosen.value = ""; // so that the same file can be chosen again
    });
  field.addEventListener("paste", (event) => {
    const some = [...event.clipboardData.files];
    if (!some.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    attach(some);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (conversation.current && event.submitter === main) stop(conversation);
    else submit();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  field.addEventListener("input", () => {
    store(draft, field.value || null);
    grow(field);
    tell("");
  });
  if (microphone) dictate(microphone, field, { put, submit, tell });

  const reading = () => (quiet.hidden = !speaking());
  const watched = [
    [conversation, "added"],
    [conversation, "changed"],
    [conversation, "replaced"],
    [daemon, "change"],
    [twins, "change"],
  ];
  for (const [what, event] of watched) what.addEventListener(event, draw);
  addEventListener("speech", reading);
  field.value = stored(draft, "");
  requestAnimationFrame(() => grow(field));
  draw();
  return {
    element: h("div", { class: "composer-place" }, form, note),
    focus: () => field.focus(),
    put,
    attach,
    text: () => field.value,
    close() {
      for (const [what, event] of watched) what.removeEventListener(event, draw);
      removeEventListener("speech", reading);
    },
  };
}

function grow(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** The microphone: words appear as they are understood; in voice mode the pause after them sends. */
function dictate(button, field, { put, submit, tell }) {
  let end = null;
  const draw = () => {
    button.setAttribute("aria-pressed", String(Boolean(end)));
    button.setAttribute("aria-label", end ? "Stop listening" : "Speak");
    button.title = end ? "Stop listening" : "Speak";
  };
  draw();
  button.addEventListener("click", async () => {
    if (end) return end();
    stopSpeaking();
    const before = field.value.trim();
    let complete = false;
    tell(
      stored(SPOKEN_NOTE)
        ? "Listening…"
        : "Listening… Some browsers send the sound to their maker to turn it into text.",
    );
    store(SPOKEN_NOTE, true);
    end = await listen({
      heard(text, final) {
        complete = final;
        put([before, text.trim()].filter(Boolean).join(" "));
      },
      ended(problem) {
        end = null;
        draw();
        tell(problem);
        if (problem) return;
        if (complete && daemon.health?.voice_mode) submit();
        else field.focus();
      },
    });
    draw();
  });
}
