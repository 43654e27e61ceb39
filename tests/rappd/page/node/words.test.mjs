/** Names and sentences of the page that need no layout. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { breakable } from "../web/lib/dom.js";
import { firstSentence } from "../web/lib/format.js";
import { wordsOf } from "../web/components/chat/turn-view.js";
import { stateWord } from "../web/components/twins/twin-words.js";
import { phoneName } from "../phone/phone-name.js";

test("names break between their words alone", () => {
  const pieces = (name) => breakable(name).filter((part) => typeof part === "string");
  assert.deepEqual(pieces("Slow_archivist-of.the/allotments"), ["Slow_", "archivist-", "of.", "the/", "allotments"]);
  assert.deepEqual(pieces("HackerNews"), ["Hacker", "News"]);
  assert.deepEqual(pieces("Gardener"), ["Gardener"]);
  assert.equal(pieces("raspberrypi_4f2a__x").join(""), "raspberrypi_4f2a__x");
});

test("a description is told by its first sentence", () => {
  assert.equal(firstSentence("Tells the time. Use it when…\nmore"), "Tells the time.");
  assert.equal(firstSentence("Python 3.11 code\nmore"), "Python 3.11 code");
  assert.equal(firstSentence(undefined), "");
});

test("a twin is running or stopped, whichever page says it", () => {
  assert.deepEqual(["asleep", "awake", "archived"].map(stateWord), ["stopped", "running", "archived"]);
});

const AGENTS = [
  ["Mozilla/5.0 (Linux; Android 14; SM-G991B) AppleWebKit/537.36 SamsungBrowser/25.0 Chrome/121 Mobile Safari/537.36", "SM-G991B"],
  ["Mozilla/5.0 (Linux; Android 13; Pixel 8 Build/TQ3A) AppleWebKit/537.36 Chrome/119 Mobile Safari/537.36", "Pixel 8"],
  ["Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/130 Mobile Safari/537.36", "Android, Chrome"],
  ["Mozilla/5.0 (Android 14; Mobile; rv:131.0) Gecko/131.0 Firefox/131.0", "Android, Firefox"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1", "iPhone, Safari"],
  ["Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130 Safari/537.36", "Linux, Chrome"],
  ["curl/8", "phone"],
];

test("proposed names tell phones apart", () => {
  for (const [agent, name] of AGENTS) assert.equal(phoneName(agent), name);
});

test("that no model answered is said once", () => {
  const told = { provider: "no model", model: "no model", seconds: 0.009 };
  assert.equal(wordsOf({ ...told, text: "(no model) I can…" }), "9 ms");
  assert.equal(wordsOf({ ...told, text: "9 o'clock" }), "without a model, 9 ms");
  assert.equal(wordsOf({ ...told, provider: "offline brain", text: "(no model) I can…" }), "9 ms", "recorded earlier");
  assert.equal(wordsOf({ provider: "Ollama", model: "qwen3", seconds: 2, text: "(no model)" }), "qwen3, Ollama, 2.0 s");
});
