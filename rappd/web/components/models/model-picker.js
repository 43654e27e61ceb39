/** The model that answers, as a button beside the message box; it opens the list of models to choose from. */

import { Problem, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, icon } from "../../lib/dom.js";
import { routesOf, twins } from "../twins/twins-state.js";

const SOON_MS = 100; // several reasons to ask anew often come together
const looks = new WeakMap(); // conversation → how often it was asked about: a late answer counts no more

/**
 * Learns which model answers a conversation: `{model, by, conversation, twin, everybody}`, or null where the daemon does
 * not say. `conversation.model` is then the one chosen for it or its twin.
 */
async function learnModel(conversation) {
  const { session } = conversation;
  const mine = (looks.get(conversation) ?? 0) + 1;
  looks.set(conversation, mine);
  try {
    const found = await post(`${routesOf(conversation.key)}/chat/model`, { session_id: session });
    if (conversation.session !== session) return null; // another one was begun or opened meanwhile
    if (looks.get(conversation) === mine) conversation.model = found.by === "everybody" ? "" : found.model;
    return found;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return null;
  }
}

/** The button of a conversation. `close()` when it leaves the page. */
export function modelPicker(conversation) {
  const name = h("span", {});
  const open = async () => {
    const { openModels } = await import("./model-dialog.js"); // few visits need it
    openModels(conversation, () => learnModel(conversation));
  };
  const element = actionButton([name, icon("chevron", "icon turned")], open, "quiet small model-picker");
  const draw = () => {
    const provider = daemon.health?.provider;
    element.hidden = !provider || (!daemon.operator && provider.state === "no model");
    const usual = provider?.model || provider?.name || "";
    const model = provider?.state === "no model" ? "No model" : conversation.model || usual;
    fill(name, model);
    element.setAttribute("aria-label", `Model: ${model}. Choose another.`);
  };
  let session = null; // of what is known
  const learn = async () => {
    if (session !== conversation.session) conversation.model = "";
    session = conversation.session;
    draw();
    if (await learnModel(conversation)) draw();
  };
  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(learn, SOON_MS);
  };
  const watched = [
    [daemon, "change", draw],
    [daemon, "operator", draw],
    [daemon, "back", soon],
    [conversation, "replaced", learn],
    [twins, "change", soon],
    [daemon, "model", learn],
  ];
  for (const [what, event, act] of watched) what.addEventListener(event, act);
  draw();
  soon();
  return {
    element,
    close() {
      clearTimeout(timer);
      for (const [what, event, act] of watched) what.removeEventListener(event, act);
    },
  };
}
