/** Editing a sentence in its place, and the older and newer versions of a turn. */

import { actionButton, h } from "../../lib/dom.js";

/** A form in place of a sentence, perhaps with `pictures`; `send(text)` with what it became, `cancel()` when it stays. */
export function sentenceForm(text, { pictures = false, send, cancel }) {
  const input = h("textarea", { rows: 1, "aria-label": "What you wrote" });
  const grow = () => {
    input.style.height = "auto";
    input.style.height = `${input.scrollHeight + 2}px`;
  };
  const submit = () => input.value.trim() && send(input.value.trim());
  const form = h(
    "form",
    { class: "sentence-form" },
    input,
    h(
      "p",
      { class: "soft note" },
      pictures && "Its pictures go along again. ",
      "Sent again, it is answered anew. What was said before stays: as an older version here, and in the log.",
    ),
    h(
      "div",
      { class: "sentence-buttons" },
      actionButton("Cancel", cancel, "quiet small"),
      h("button", { type: "submit", class: "secondary small" }, "Send again"),
    ),
  );
  form.addEventListener("submit", (event) => (event.preventDefault(), submit()));
  input.addEventListener("input", grow);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) submit();
    else if (event.key === "Escape") cancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  input.value = text;
  requestAnimationFrame(() => (grow(), input.focus()));
  return form;
}

/** "‹ 2 of 3 ›" for a turn with versions; nothing for one without. `choose(id)` shows another one. */
export function versionButtons(id, versions, choose) {
  if (versions.length < 2) return null;
  const at = versions.indexOf(id);
  const step = (to, sign, label) =>
    actionButton(
      sign,
      () => choose(versions[to]),
      "quiet small",
      { "aria-label": label, disabled: versions[to] === undefined },
    );
  return h(
    "span",
    { class: "versions", role: "group", "aria-label": "Versions of this question and answer" },
    step(at - 1, "‹", "Older version"),
    h("span", { class: "soft" }, `${at + 1} of ${versions.length}`),
    step(at + 1, "›", "Newer version"),
  );
}
