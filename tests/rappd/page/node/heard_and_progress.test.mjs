/** What is read aloud goes stale, how far a restore is, and the end of a list that stays in view. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { autoscroll } from "../web/lib/autoscroll.js";
import { workProgress } from "../web/components/neighborhood/work-progress.js";
import { announce } from "../web/lib/live-region.js";

test("what is announced at one moment is joined, and forgotten", () => {
  const region = document.createElement("div");
  const found = mock.method(document, "getElementById", () => region);
  mock.timers.enable({ apis: ["setTimeout"] });
  announce("kitchen is trusted.");
  announce("New: 2.");
  announce("New: 2.");
  mock.timers.tick(100);
  assert.equal(region.textContent, "kitchen is trusted. New: 2.");
  announce("Looking.", "line");
  announce("Stopped.", "line");
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

/** A list of 300 px in a window of 100, which scrolls to where it is told at once, and tells of it later. */
function longList() {
  const heard = {};
  let top = 0;
  const list = {
    scrollHeight: 300,
    clientHeight: 100,
    get scrollTop() {
      return (top = Math.min(top, this.scrollHeight - this.clientHeight));
    },
    set scrollTop(wanted) {
      top = Math.max(0, Math.min(wanted, this.scrollHeight - this.clientHeight));
    },
    addEventListener: (kind, hear) => (heard[kind] = hear),
    tells: () => heard.scroll(),
  };
  return list;
}

test("the end stays in view though the list was shorter for a moment", () => {
  const observed = new Map();
  globalThis.ResizeObserver = class {
    constructor(hear) {
      this.hear = hear;
    }
    observe(element) {
      observed.set(element, this.hear);
    }
    disconnect() {}
  };
  const list = longList();
  const content = {};
  const end = autoscroll(list, { hidden: true, addEventListener() {} }, content);
  list.scrollHeight = 900;
  end.grew();
  list.scrollHeight = 100; // its last turn is not laid out, and its height not known yet
  end.grew();
  assert.equal(list.scrollTop, 0);
  list.tells();
  list.scrollHeight = 1200;
  observed.get(content)();
  assert.equal(list.scrollTop, 1100);
});

test("the end stays in view though word of the way there comes after more was added", () => {
  globalThis.ResizeObserver = class { observe() {} disconnect() {} };
  const list = longList();
  const pill = { hidden: true, addEventListener() {} };
  const end = autoscroll(list, pill);
  end.grew();
  assert.equal(list.scrollTop, 200);
  list.scrollHeight = 900;
  list.tells(); // of the way to 200
  end.grew();
  assert.deepEqual([list.scrollTop, pill.hidden], [800, true]);

  list.tells();
  list.scrollTop = 300; // the reader goes up
  list.tells();
  list.scrollHeight = 1200;
  end.grew();
  assert.deepEqual([list.scrollTop, pill.hidden], [300, false]);

  list.scrollTop = 700; // down again, but not to the end
  list.tells();
  end.grew();
  assert.deepEqual([list.scrollTop, pill.hidden], [700, false]);
  list.scrollTop = 1050;
  list.tells();
  end.grew();
  assert.deepEqual([list.scrollTop, pill.hidden], [1100, true]);
});
