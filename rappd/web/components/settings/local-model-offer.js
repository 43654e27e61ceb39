/** Asks the operator whether a model server that was found on this computer may answer. */

import { daemon } from "../../lib/daemon-state.js";
import { actionButton, fill, h, withCode } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { store, stored } from "../../lib/storage.js";
import { attemptIn } from "../ui/problem.js";
import { toast } from "../ui/toast.js";

const LOOK_MS = 30_000;
const NOT_NOW_MS = 24 * 3600 * 1000;
const NOT_NOW = "local-model-not-now"; // {server, until}

/** Keeps `element` showing the question while it is open. */
export function localModelOffer(element) {
  let timer = 0;
  let drawn = "";
  let closed = false;
  const errorPlace = h("div", {});

  const draw = (found) => {
    const offered = found?.offered && !putOff(found.offered.server) ? found.offered : null;
    const refused = found?.refused ?? [];
    const text = JSON.stringify([offered, refused]);
    if (text === drawn) return;
    drawn = text;
    fill(errorPlace);
    fill(element, refused.map(warning), offered && question(offered), errorPlace);
  };
  const question = (offered) =>
    h(
      "div",
      { class: "offer" },
      h(
        "p",
        {},
        `${called(offered)} runs on this computer and can answer you, with its model ${offered.model}. `,
        "It would read what you write here.",
        h("span", { class: "soft help" }, `It was found at ${offered.where}.`),
      ),
      h(
        "div",
        { class: "offer-actions" },
        actionButton("Use it", () => use(offered), "primary"),
        actionButton("Cancel", () => notNow(offered)),
      ),
    );
  const use = async (offered) => {
    const worked = await attemptIn(errorPlace, () => operations.models.useLocal({ server: offered.server }));
    if (!worked) return;
    draw(null);
    toast(`${called(offered)} answers from now on.`);
    daemon.look();
  };
  const notNow = (offered) => {
    store(NOT_NOW, { server: offered.server, until: Date.now() + NOT_NOW_MS });
    draw(null);
    toast("You can still choose it in Settings.");
    document.getElementById("main").focus();
  };
  const look = async () => {
    clearTimeout(timer);
    if (!daemon.operator || !daemon.awake) draw(null);
    else if (!document.hidden) {
      try {
        draw(await operations.models.local());
      } catch (found) {
        if (found.code === undefined) throw found; // what stands there stays
      }
    }
    clearTimeout(timer);
    if (!closed) timer = setTimeout(look, LOOK_MS);
  };
  daemon.addEventListener("operator", look);
  daemon.addEventListener("change", look);
  look();
  return {
    element,
    close() {
      closed = true;
      clearTimeout(timer);
      daemon.removeEventListener("operator", look);
      daemon.removeEventListener("change", look);
    },
  };
}

const called = ({ name }) => (name === "local model" ? "A model server" : name);

const putOff = (server) => {
  const { server: known, until } = stored(NOT_NOW) ?? {};
  return known === server && Date.now() < until;
};

const warning = (server) =>
  h(
    "p",
    { class: "warning", role: "alert" },
    withCode(`An agent on this computer pretends to be a model (${server}). It is not used. `),
    withCode("Remove the agent that you do not know, then restart rappd."),
  );
