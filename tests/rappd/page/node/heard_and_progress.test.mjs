/** What is read aloud goes stale, and how far a restore is. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { announce as announceOnPhone } from "../phone/live-region.js";
import { workProgress } from "../web/components/neighborhood/work-progress.js";
import { announce } from "../web/lib/live-region.js";

for (const [place, say] of [["page", announce], ["phone", announceOnPhone]])
  test(`the ${place} joins what is announced at one moment, and forgets it`, () => {
    const region = document.createElement("div");
    const found = mock.method(document, "getElementById", () => region);
    mock.timers.enable({ apis: ["setTimeout"] });
    say("kitchen is trusted.");
    say("New: 2.");
    say("New: 2.");
    mock.timers.tick(100);
    assert.equal(region.textContent, "kitchen is trusted. New: 2.");
    say("Stopped.");
    assert.equal(region.textContent, "", "emptied first, so that the same is said anew");
    mock.timers.tick(100);
    assert.equal(region.textContent, "Stopped.");
    mock.timers.tick(20_000);
    assert.equal(region.textContent, "", "nothing stale is left to be found");
    mock.timers.reset();
    found.mock.restore();
  });

test("a restore shows its parts in per cent, from 0 to 100", () => {
  const view = workProgress();
  const seen = [0, 1, 4, 8].map((done) => {
    view.show({ kind: "restore", phase: "hatching", machines: [], parts: { done, whole: 8, last: done ? "Rose" : "" } });
    const [bar] = view.element.all("progress");
    return [bar.value / bar.max, view.element.all("li")[0].textContent];
  });
  assert.deepEqual(seen, [
    [0, "Parts0 %, 0 of 8"],
    [0.125, "Parts12 %, 1 of 8, Rose"],
    [0.5, "Parts50 %, 4 of 8, Rose"],
    [1, "Parts100 %, 8 of 8, Rose"],
  ]);
});
