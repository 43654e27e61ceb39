/** Search: a finding holds the words, says who said them and when, and leads to them. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { foundRow } from "../web/components/search/search-rows.js";
import { wordParts } from "../web/lib/found-words.js";

const AT = Date.UTC(2024, 10, 3, 12) * 1000;
const FOUND = { kind: "conversation", title: "cars", key: "c0", with: "brainstem", at: AT, turn: "t1", yours: true };

test("an excerpt keeps its later sentences, with who said them and when", () => {
  const row = foundRow({ ...FOUND, detail: "It was late. Then came the pumpkins." }, " pumpkins ");
  assert.equal(row.detail, "you, 3 Nov: It was late. Then came the pumpkins.");
  assert.equal(row.href, "#/chat/conversation/c0/t1/pumpkins");
  const answer = foundRow({ ...FOUND, yours: false, with: "0123456789ab", detail: "pumpkins" }, "pumpkins");
  assert.equal(answer.detail, "01234567, 3 Nov: pumpkins", "the twin whose name is not known");
});

test("a title that was found leads to the conversation", () => {
  const { turn, yours, ...titled } = FOUND;
  assert.equal(foundRow({ ...titled, detail: "" }, "cars").href, "#/chat/conversation/c0");
});

test("of other kinds the first sentence is enough", () => {
  const row = foundRow({ kind: "agent", title: "Clock", key: "Clock", detail: "Tells the time. Use it when…" }, "clock");
  assert.equal(row.detail, "Tells the time.");
});

test("words are found as they are written, signs included", () => {
  const parts = wordParts("Pumpkins (a+b) and PUMPKINS", ["pumpkins", "(a+b)"]);
  assert.deepEqual(
    parts.filter(({ found }) => found).map(({ text }) => text),
    ["Pumpkins", "(a+b)", "PUMPKINS"],
  );
  assert.equal(parts.map(({ text }) => text).join(""), "Pumpkins (a+b) and PUMPKINS");
  assert.deepEqual(wordParts("x", []), [{ text: "x", found: false }]);
});
