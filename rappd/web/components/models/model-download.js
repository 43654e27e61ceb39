/** Downloading a model by Ollama: a button with the model's name, then a bar that can be cancelled. Never by itself. */

import { postWithEvents } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { bytes, duration } from "../../lib/format.js";
import { announce } from "../../lib/live-region.js";
import * as operations from "../../lib/operations.js";
import { attemptIn, problemView } from "../ui/problem.js";

const TELL_MS = 3000;
/**
 * A button "Download `model`", or with a model that `input` names, from the Ollama labelled `server` ("": the one in use).
 * `arrived(model)` when it is here.
 */
export function modelDownload({ model = "", server = "", arrived = () => undefined }) {
  const input = model ? null : h("input", { type: "text", value: "llama3.2", autocomplete: "off", spellcheck: "false" });
  const button = h("button", { type: model ? "button" : "submit", class: "secondary" }, model ? `Download ${model}` : "Download");
  const offer = input
    ? h("form", { class: "model-download-form" }, h("label", {}, "Model to download", input), button)
    : button;
  const place = h("div", {});
  const element = h("div", { class: "model-download" }, offer, place);
  let running = false;

  const begin = async (name) => {
    if (running || !name) return;
    running = true;
    const view = downloadBar(name, () => attemptIn(problems, () => operations.models.cancelDownload({ model: name })));
    const problems = h("div", {});
    offer.hidden = true;
    fill(place, view.element, problems);
    try {
      await postWithEvents("/models/download", { model: name, ...(server && { server }) }, view.moved);
      fill(place, h("p", {}, h("span", { class: "sign good" }, "✓ "), `${name} is here.`));
      announce(`${name} is here.`);
      daemon.look();
      arrived(name);
      offer.hidden = Boolean(model);
    } catch (found) {
      if (found.code === undefined) throw found;
      const cancelled = found.code === "cancelled";
      fill(place, cancelled ? h("p", { class: "soft" }, "Cancelled. What has arrived is kept for the next time.") : problemView(found));
      offer.hidden = false;
      button.focus();
    }
    running = false;
  };
  if (input) {
    offer.addEventListener("submit", (event) => {
      event.preventDefault();
      begin(input.value.trim());
    });
  } else button.addEventListener("click", () => begin(model));
  return { element, follow: begin };
}

/** Downloads under way that another window began: names of models. */
export const downloadsUnderWay = async () => (await operations.models.downloads()).downloads.map(({ model }) => model);

function downloadBar(name, cancel) {
  const bar = h("progress", { "aria-label": `Downloading ${name}` });
  const amount = h("span", { class: "soft" }, " asking Ollama…");
  const button = actionButton("Cancel", cancel, "quiet small");
  let began = 0;
  let first = 0;
  return {
    element: h("div", { class: "progress" }, h("p", {}, `Downloading ${name}`, amount), bar, button),
    moved({ status, completed, total }) {
      if (!total) return fill(amount, ` ${status}`);
      if (!began) [began, first] = [performance.now(), completed];
      bar.max = total;
      bar.value = completed;
      fill(amount, far(completed, total, completed - first, performance.now() - began));
    },
  };
}

function far(done, total, since, ms) {
  const parts = [` ${Math.floor((100 * done) / total)} %, ${bytes(done)} of ${bytes(total)}`];
  if (ms > TELL_MS && since > 0) parts.push(`${duration(((total - done) * ms) / since / 1000)} left`);
  return parts.join(", ");
}
