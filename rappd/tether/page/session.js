// The session as this phone sees it: events in the daemon's order, sentences that are kept until they are answered.

import { RemovedError, resume } from "./connect.js";
import { newId } from "./proofs.js";
import { Link } from "./link.js";
import { keep, kept } from "./storage.js";
import { StoppedError } from "./unprotected.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15_000;
// Silence of the computer: while the page is seen, a cut is shown after SILENT_MS, and a new way is
// looked for after GONE_MS. A hidden page's timers are slowed down by the browser.
const LOOK_MS = 500;
const PING_MS = 1500;
const SILENT_MS = 3500;
const GONE_MS = 7000;
const HIDDEN = { ping: 5000, gone: 15_000 };
const PAGE_PAUSE = 30;
const AT_ONCE = 20; // sentences, each half second: the computer takes fifty frames a second
const NEXT_MS = 500;

export class Session {
  constructor(device, show) {
    this.device = device;
    this.show = show; // called with this session after each change
    this.events = [];
    this.unsent = [];
    this.sent = new Set(); // ids of those that went over this connection
    this.lastSeq = 0;
    this.id = "";
    this.link = new Link();
    this.kind = device.kind ?? "";
    this.state = "connecting";
    this.participants = [];
    this.workflows = [];
    this.players = [];
    this.mayRun = false;
    this.underway = null;
    this.eggs = { may: false, offers: [] };
    this.waiting = { may: false, rows: [], more: 0 };
    this.matter = null; // what was asked for to be read
    this.answered = null; // what came of the last answer to one
    this.tokens = [];
    this.mayTalk = true;
    this.typing = "";
    this.returned = ""; // words of a sentence that was refused, until the page has taken them back
    this.here = [];
    this.closed = false;
    this.upToDate = false;
    this.pause = FIRST_PAUSE;
    this.wake = () => {};
  }

  /** Takes up what an earlier page kept, then connects again and again until `leave`. */
  async run(frames) {
    const before = (await kept("unsent")) ?? [];
    this.unsent = [...before, ...this.unsent]; // what was written meanwhile is the latest
    for (const event of ["online", "focus"]) addEventListener(event, () => this.wake());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.seen());
    addEventListener("pagehide", () => this.frames?.send({ type: "bye" }));
    await this.connect(frames);
  }

  /** Goes on here, after another tab took over or the person stopped it. */
  again() {
    this.left = this.replaced = false;
    this.change({ state: "connecting" });
    return this.connect(null);
  }

  /** Connects again and again until it is over for this page. */
  async connect(frames) {
    for (let next = frames; !this.left; next = null) {
      try {
        await this.talk(next ?? (await resume(this.device)));
        this.pause = FIRST_PAUSE;
      } catch (error) {
        if (error instanceof RemovedError) {
          this.change({ state: "removed" });
          return;
        }
        if (error instanceof StoppedError) {
          this.left = true;
          this.change({ state: "stopped" });
          return;
        }
      }
      if (this.replaced) this.change({ state: "replaced" });
      else if (!this.left) {
        this.change({ state: "lost" });
        await this.rest();
      } // a phone that left, or was removed, has lost nothing
    }
  }

  /** Sends a sentence, now or when the computer is there again. It is kept on this phone until the computer has it. */
  async say(text, to, via = "") {
    this.unsent.push({ event_id: newId(), text, to, via, at: Date.now() });
    this.change({ notice: "" });
    await keep("unsent", this.unsent);
    this.sendUnsent();
  }

  /** A timer spoke in a conversation of this phone's user; the view that shows it reads it. */
  timerSpoke() {}

  /** The page is looked at again: its timers were slow meanwhile, so that silence says nothing yet. */
  seen() {
    this.wake();
    this.heard = performance.now();
    this.frames?.send({ type: "ping" });
  }

  /** Sends what is not kept for later; false, and said so, while the computer is away. */
  now(message) {
    const there = this.state === "connected";
    this.change({ notice: there ? "" : "That was not done: the computer is not connected." });
    if (there) this.frames.send(message);
    return there;
  }

  /** Empties the screens of all. */
  clear() {
    return this.now({ type: "clear" });
  }

  /** Starts, pauses, resumes or aborts a workflow; `given` are the texts and players for a start. */
  runWorkflow(action, name, given = {}) {
    return this.now({ type: "workflow", action, name, ...given });
  }

  /** Dismisses a piece of news that waited for the owner. */
  dismiss(key) {
    return this.now({ type: "dismiss", key });
  }

  /** Asks for the whole of what waits. */
  look(key) {
    this.answered = null;
    return this.now({ type: "look", key });
  }

  /** Says yes or no to exactly what was shown. */
  answer({ key, sha256 }, yes) {
    return this.now({ type: "answer", key, sha256, yes });
  }

  /** A token for one request for an egg. Rejects with the reason where there is none. */
  eggToken() {
    return new Promise((resolve, reject) => {
      if (!this.frames) {
        reject(new Error("The computer is not connected."));
        return;
      }
      this.tokens.push({ resolve, reject });
      this.frames.send({ type: "egg_token" });
    });
  }

  isTyping() {
    if (performance.now() - (this.typedAt ?? -Infinity) < 2000) return;
    this.typedAt = performance.now();
    this.frames?.send({ type: "typing" });
  }

  leave() {
    this.left = true;
    this.frames?.send({ type: "bye" });
    this.frames?.end();
    this.wake();
  }

  talk(frames) {
    return new Promise((resolve) => {
      this.frames = frames;
      this.heard = performance.now(); // steady: the phone's clock may be set meanwhile
      let pinged = -Infinity;
      const timer = setInterval(() => {
        const now = performance.now();
        const silent = now - this.heard;
        if (silent > (document.hidden ? HIDDEN.gone : GONE_MS)) frames.end();
        else if (silent > SILENT_MS && !document.hidden && this.state === "connected") this.change({ state: "lost" });
        else if (now - pinged >= (document.hidden ? HIDDEN.ping : PING_MS)) {
          pinged = now;
          frames.send({ type: "ping" });
        }
      }, LOOK_MS);
      frames.listen(
        (message) => this.take(message),
        () => {
          clearInterval(timer);
          this.frames = null;
          this.welcome = false;
          this.link.detach();
          for (const { reject } of this.tokens.splice(0)) reject(new Error("The computer is not connected."));
          resolve();
        },
      );
      frames.send({ type: "hello", last_seq: this.lastSeq, session: this.id });
    });
  }

  take(message) {
    this.heard = performance.now();
    if (this.welcome && this.state === "lost") {
      this.change({ state: "connected" }); // it was only slow
      this.sendUnsent(); // what was written meanwhile
    }
    if (this.link.take(message)) return;
    if (message.type === "ping") this.frames?.send({ type: "pong" });
    else if (message.type === "welcome") this.welcomed(message);
    else if (message.type === "standing") this.stands(message);
    else if (message.type === "timer") this.timerSpoke(message.thread);
    else if (message.type === "events") this.shown(message);
    else if (message.type === "refused") this.refused(message);
    else if (message.type === "presence") this.change({ here: message.here.filter((name) => name !== this.device.name) });
    else if (message.type === "workflows") this.change({ workflows: message.workflows, mayRun: message.may_run, players: message.players });
    else if (message.type === "participants") this.change({ participants: message.participants });
    else if (message.type === "eggs") this.change({ eggs: message });
    else if (message.type === "waiting") this.change({ waiting: message });
    else if (message.type === "matter") this.change({ matter: message });
    else if (message.type === "answered") this.change({ answered: message });
    else if (message.type === "egg_token") this.tokens.shift()?.resolve(message.token);
    else if (message.type === "typing") this.othersType(message.by);
    else if (message.type === "replaced") {
      clearTimeout(this.typingTimer);
      this.left = true; // two pages of one phone would end each other for ever
      this.replaced = true;
    } else if (message.type === "revoked") {
      this.left = true;
      this.change({ state: "removed" });
    }
  }

  welcomed(message) {
    if (message.session !== this.id || message.from_seq === 0) {
      this.events = [];
      this.upToDate = false;
      this.underway = null;
      this.lastSeq = message.from_seq;
    }
    const moved = this.id !== "" && message.session !== "" && message.session !== this.id;
    this.welcome = true;
    this.sent.clear();
    this.link.attach(this.frames);
    this.pause = FIRST_PAUSE;
    this.change({
      notice: moved ? "The computer opened another session." : "",
      closed: message.closed === true,
      id: message.session,
      participants: message.participants,
      kind: message.kind,
      here: message.session ? this.here : [],
      mayTalk: message.may_talk,
      secure: message.secure,
      state: "connected",
    });
    this.sendUnsent();
  }

  /** Takes whose phone this is, as the owner said, and what it may do over this connection. */
  stands({ kind, may_talk: mayTalk, secure }) {
    this.change({ kind, mayTalk, secure });
  }

  async shown(message) {
    const fresh = message.events.filter((event) => event.seq > this.lastSeq);
    this.events.push(...fresh);
    this.underway = fresh.findLast((event) => event.workflow)?.workflow ?? this.underway;
    const cleared = this.events.findLastIndex((event) => event.kind === "clear");
    if (cleared > 0) this.events = this.events.slice(cleared);
    this.lastSeq = message.last_seq;
    if (fresh.some((event) => event.kind === "session_end")) this.closed = true;
    this.upToDate = !message.more;
    if (message.more) setTimeout(() => this.frames?.send({ type: "more" }), PAGE_PAUSE);
    const arrived = new Set(fresh.map((event) => event.event_id));
    const before = this.unsent.length;
    this.unsent = this.unsent.filter((one) => !arrived.has(one.event_id));
    if (fresh.some((event) => event.by === this.typing)) this.typing = "";
    this.change({});
    if (before !== this.unsent.length) await keep("unsent", this.unsent);
  }

  async refused(message) {
    if (message.event_id === "egg_token") {
      this.tokens.shift()?.reject(new Error(message.error));
      return;
    }
    const returned = this.unsent.find((one) => one.event_id === message.event_id)?.text ?? "";
    this.unsent = this.unsent.filter((one) => one.event_id !== message.event_id);
    this.change({ notice: message.error, returned });
    await keep("unsent", this.unsent);
  }

  othersType(name) {
    this.change({ typing: name });
    clearTimeout(this.typingTimer);
    this.typingTimer = setTimeout(() => this.change({ typing: "" }), 4000);
  }

  /** Sends what did not go over this connection yet, so many at a time. */
  sendUnsent() {
    clearTimeout(this.sending);
    if (this.state !== "connected" || !this.id) return;
    const left = this.unsent.filter(({ event_id: id }) => !this.sent.has(id));
    for (const { event_id, text, to, via } of left.slice(0, AT_ONCE)) {
      this.sent.add(event_id);
      this.frames?.send({ type: "say", event_id, text, to, via });
    }
    if (left.length > AT_ONCE) this.sending = setTimeout(() => this.sendUnsent(), NEXT_MS);
  }

  rest() {
    const wait = this.pause * (0.8 + Math.random() * 0.4);
    this.pause = Math.min(this.pause * 1.6, LONGEST_PAUSE);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  change(fields) {
    Object.assign(this, fields);
    this.show(this);
  }
}
