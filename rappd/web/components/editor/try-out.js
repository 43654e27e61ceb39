/** Trying an agent file out: the contract tests over a text, and the forms that run its agents. */

import { post } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { runForm } from "../agents/run-form.js";
import { routesOf } from "../twins/twins-state.js";
import { attemptIn } from "../ui/problem.js";
import { testResults } from "./test-results.js";

/** Tests `source` as the content of `file`, of the brainstem or the twin `key`; the outcome fills `place`. */
export async function showTest(place, { key, file, source }) {
  const tell = (...outcome) => {
    fill(place, ...outcome);
    place.scrollIntoView({ block: "nearest" }); // it stands below the text, which fills a phone
  };
  tell(h("p", { class: "soft" }, "Testing…"));
  const errorPlace = h("div", {});
  let found = null;
  await attemptIn(errorPlace, async () => {
    found = await post(`${routesOf(key)}/agents/test`, { filename: file, source });
  });
  tell(h("section", { role: "status" }, h("h3", {}, "Test"), errorPlace, found && testResults(found)));
}

/** Fills `place` with a form for each agent of `file` that serves. */
export async function showRun(place, { key, file }) {
  const errorPlace = h("div", {});
  let cards = [];
  await attemptIn(errorPlace, async () => {
    const { files } = await operations.agents.list({ twin: key });
    cards = files.filter(({ filename }) => filename === file).flatMap((one) => one.cards);
  });
  const forms = cards
    .filter(({ name, shadowed_by: other }) => name && !other)
    .map((card) => runForm(card, key));
  fill(
    place,
    h("h3", {}, "Run"),
    errorPlace,
    forms.map(({ element }) => element),
    forms.length === 0 && h("p", { class: "soft" }, "No agent of this file runs now."),
  );
  forms[0]?.focus();
}
