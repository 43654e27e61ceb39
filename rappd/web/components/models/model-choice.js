/** Models for a conversation, for a twin and for everybody: which one answers, and choosing another. */

import { Problem, post } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { routesOf, twins } from "../twins/twins-state.js";

const AUTOMATIC = "auto";
const looks = new WeakMap(); // conversation → how often it was asked about: a late answer counts no more

/** Choices of a model: event `chosen`, for what shows one. */
export const modelChoice = new EventTarget();

/**
 * Learns which model answers a conversation: `{model, by, conversation, twin, everybody}`, or null where the daemon does
 * not say. `conversation.model` is then the one chosen for it or its twin.
 */
export async function learnModel(conversation) {
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

/** For whom a model may be chosen here, the narrowest first: `{name, words, answers, choose(model)}`. */
export function scopesOf(conversation) {
  const everybody = {
    name: "everybody",
    words: `Everybody who asks ${daemon.name}`,
    answers: (model) => `${model} answers from now on.`,
    choose: (model) => post("/models/set", { model }),
  };
  if (!conversation) return [everybody];
  const { key, session, name } = conversation;
  return [
    {
      name: "conversation",
      words: "This conversation",
      answers: (model) => `${model} answers here from now on.`,
      choose: (model) => post(`${routesOf(key)}/chat/model`, { session_id: session, model }),
    },
    key &&
      daemon.operator && {
        name: "twin",
        words: `${name}, in every conversation`,
        answers: (model) => `${model} answers for ${name} from now on.`,
        choose: (model) => post(`${routesOf(key)}/model`, { model }),
      },
    everybody,
  ].filter(Boolean);
}

/** Chooses `model` within a scope; "" takes the choice back. Raises `Problem`. */
export async function chooseModel(scope, model) {
  await scope.choose(model || AUTOMATIC);
  daemon.look();
  if (scope.name === "twin") twins.touch();
  modelChoice.dispatchEvent(new Event("chosen"));
}
