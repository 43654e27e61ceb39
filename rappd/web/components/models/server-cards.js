/** Sources of answers, as cards: this computer, another server, Azure, Copilot, or no model at all. */

import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h } from "../../lib/dom.js";
import { clock } from "../../lib/format.js";
import * as operations from "../../lib/operations.js";
import { attemptIn } from "../ui/problem.js";
import { copilotCard } from "./copilot-card.js";
import { localCard } from "./local-card.js";
import { openModels } from "./model-dialog.js";
import { azureCard, openaiCard } from "./server-card.js";
import { serverChoice, useServer } from "./server-choice.js";

const HELPED =
  "Helped by keyword matching: an agent that your words plainly ask for is used, even if this model does not think of it.";

/** The section's content, kept up to date; for operators. */
export function serverCards() {
  const errorPlace = h("div", {});
  const now = h("p", { class: "answers-now" });
  const cards = [localCard(), openaiCard(), azureCard(), copilotCard()];
  const without = actionButton(
    "Use no model",
    () => attemptIn(errorPlace, () => useServer({ kind: "none" }, "Answers come without a model")),
    "quiet",
  );
  const pick = actionButton("Choose another model", () => openModels());
  let closed = false;
  let looks = 0;

  const drawNow = () => {
    const provider = daemon.health?.provider;
    const none = !provider || provider.state === "no model";
    pick.hidden = none;
    fill(
      now,
      none ? "No model answers: agents are found by the words you type." : ["Answers come from ", h("strong", {}, daemon.thinking), "."],
      h("span", { class: "soft help" }, whereItRuns(provider)),
      provider?.helped && h("span", { class: "soft help helped" }, HELPED),
    );
  };
  let reveals = false;
  const show = (servers) => {
    reveals = false;
    const here = servers.local.servers.some(({ agent }) => !agent);
    if (here) cards[0].element.querySelector("select, input, button")?.focus();
    else cards[1].open();
  };
  const refresh = () =>
    attemptIn(errorPlace, async () => {
      const look = ++looks;
      const servers = await operations.models.servers();
      if (closed || look !== looks) return; // a later look knows better
      without.hidden = servers.use === "none";
      for (const card of cards) card.update(servers);
      if (reveals) show(servers);
    });
  daemon.addEventListener("change", drawNow);
  serverChoice.addEventListener("change", refresh);
  drawNow();
  refresh();
  return {
    element: h(
      "div",
      { class: "server-cards" },
      h("div", { class: "setting" }, now, pick),
      h("div", { class: "cards" }, cards.map(({ element }) => element)),
      without,
      errorPlace,
    ),
    /** Goes to the card that is likeliest wanted: a server found here, else the form for another. */
    reveal() {
      reveals = true;
      refresh();
    },
    close() {
      closed = true;
      daemon.removeEventListener("change", drawNow);
      serverChoice.removeEventListener("change", refresh);
      for (const card of cards) card.close?.();
    },
  };
}

function whereItRuns(provider) {
  if (!provider || provider.state === "no model") return "";
  const at = provider.refused_at ? ` (${clock(provider.refused_at * 1000)})` : "";
  if (provider.refusal)
    return [provider.where && `At ${provider.where}.`, provider.refusal + at, provider.do].filter(Boolean).join(" ");
  const state = ["ok", "ready", "looking", "", undefined].includes(provider.state) ? "" : `It ${provider.state}.`;
  return [provider.where && `At ${provider.where}.`, state, state && provider.do].filter(Boolean).join(" ");
}
