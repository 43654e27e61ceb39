/** Trying an agent file out: the contract tests over a text, and the forms that run its agents. */

import { post } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import * as operations from "../../lib/operations.js";
import { runForm } from "../agents/run-form.js";
import { routesOf } from "../twins/twins-state.js";
import { attemptIn } from "../ui/problem.js";

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

const WORDS = {
  has_basic_agent: "It holds an agent",
  instantiation: "The agent can be made",
  runtime_name_is_tool_safe: "Every model can call it by its name",
  perform_returns_str: "It answers with text",
  standalone_execution: "The file runs by itself",
  declares_listener: "It holds a listener",
  answers_its_example: "It answers the example of its fields",
  has_docstring: "The file says what it is for",
  no_hardcoded_secrets: "It holds no password",
  has_manifest: "It describes itself for a registry",
  manifest_fields: "That description is whole",
  name_format: "Its name fits a registry",
};

/** A list of `{test, passed, message, required, skipped}`: what failed first, what passed or was not tested folded. */
export function testResults({ passed, tests }) {
  const failed = tests.filter((one) => !one.passed && !one.skipped);
  const wrong = failed.filter((one) => one.required);
  const advice = failed.filter((one) => !one.required);
  const skipped = tests.filter((one) => one.skipped);
  const fine = tests.filter((one) => one.passed);
  return h(
    "div",
    { class: "test-results" },
    h(
      "p",
      {},
      h("span", { class: `sign ${passed ? "good" : "bad"}` }, passed ? "✓ " : "✗ "),
      passed
        ? "The test found nothing wrong."
        : `The test found ${wrong.length === 1 ? "one fault" : `${wrong.length} faults`}.`,
    ),
    list(wrong, "bad", "✗ "),
    fold(`What passed, ${fine.length}`, list(fine, "good", "✓ "), fine.length),
    fold(`Not tested, ${skipped.length}`, list(skipped, "soft", "– "), skipped.length),
    fold(`Not needed here, ${advice.length}`, list(advice, "soft", "– "), advice.length),
  );
}

const fold = (title, content, length) =>
  length > 0 && h("details", { class: "fold" }, h("summary", {}, title), content);

const list = (tests, tone, sign) =>
  tests.length > 0 &&
  h(
    "ul",
    { role: "list" },
    tests.map(({ test, passed, message, skipped }) =>
      h(
        "li",
        {},
        h("span", { class: `sign ${tone}`, "aria-hidden": "true" }, sign),
        skipped || passed ? (WORDS[test] ?? test) : message || `Not so: ${WORDS[test] ?? test}`,
      ),
    ),
  );
