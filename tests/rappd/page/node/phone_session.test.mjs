/** What is written on a phone, and what comes to it, before its conversation has begun. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Session } from "../phone/session.js";
import { readAloud } from "../phone/voice.js";

globalThis.addEventListener ??= () => {};

test("words that were written before the phone's storage answered are sent", async () => {
  const sent = [];
  const frames = { send: (message) => sent.push(message) };
  frames.listen = (take, closed) => Object.assign(frames, { take, end: closed });
  const session = new Session({ name: "Anna" }, () => {});
  const talk = session.run(frames);
  await session.say("Water the tomatoes", "");
  await new Promise((resolve) => setTimeout(resolve, 10));
  frames.take({ type: "welcome", session: "s", from_seq: 0, participants: [], may_talk: true, secure: true });
  assert.deepEqual(
    sent.filter((message) => message.type === "say").map((message) => message.text),
    ["Water the tomatoes"],
  );
  session.leave();
  await talk;
});

test("a click before the phone's storage answered is the last word", async () => {
  Object.assign(window, { speechSynthesis: {}, SpeechSynthesisUtterance: class {} });
  const { button } = readAloud();
  button.onclick();
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(button.ariaPressed, "true");
});
