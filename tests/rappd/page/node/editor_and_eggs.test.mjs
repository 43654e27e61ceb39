/** The editor's test results and what is said of eggs: one fault is one fault, and what was not tested is no cross. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { testResults } from "../web/components/editor/try-out.js";
import { told } from "../web/components/outbox/egg-sending.js";

const passed = (name) => ({ test: name, passed: true, message: "", required: true, skipped: false });
const skipped = (name) => ({ test: name, passed: false, message: "Skipped — no instance", required: true, skipped: true });
const FAULT = { test: "has_basic_agent", passed: false, message: "line 2: expected ':'", required: true, skipped: false };

test("a file that does not load has one fault; tests after it are not tested", () => {
  const tests = [FAULT, skipped("instantiation"), skipped("perform_returns_str"), passed("no_hardcoded_secrets")];
  const view = testResults({ passed: false, tests });
  assert.match(view.textContent, /The test found one fault\./);
  assert.equal(view.textContent.split("✗").length - 1, 2, "one for the whole, one for the fault");
  assert.deepEqual(
    view.all("summary").map((summary) => summary.textContent),
    ["What passed, 1", "Not tested, 2"],
  );
  assert.doesNotMatch(view.textContent, /Skipped/);
});

test("an egg that was sent waits for approval there, or here for the machine", () => {
  assert.equal(told({ state: "done", name: "Rose", peer: "pi" }), "Sent. Rose waits for approval on pi.");
  const queued = { state: "queued", name: "Rose", peer: "pi\u202e", why: "it is away." };
  assert.equal(told(queued), "Rose waits for pi: it is away. It goes by itself.");
});
