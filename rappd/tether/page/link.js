// Requests to the computer over the phone's own connection, for the page's components: what `fetch` is elsewhere.

const PART = 48_000;
const PAUSE_MS = 60; // between the parts of a stream: several events come together, and none waits for long

export class Link {
  #frames = null;
  #open = new Map(); // id → request
  #count = 0;

  /** Takes up a connection on which the computer has said welcome. */
  attach(frames) {
    this.#frames = frames;
  }

  /** The connection is gone: what was under way breaks off, as it would by `fetch`. */
  detach() {
    this.#frames = null;
    for (const request of this.#open.values()) request.fail(new TypeError("The computer is not connected."));
    this.#open.clear();
  }

  /** As `fetch`, for a GET or a POST. */
  fetch = (path, { method = "GET", headers = {}, body, signal } = {}) => {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (!this.#frames) return Promise.reject(new TypeError("The computer is not connected."));
    const text = body ? new TextDecoder().decode(body) : "";
    const parts = [];
    for (let at = 0; at === 0 || at < text.length; at += PART) parts.push(text.slice(at, at + PART));
    const id = (this.#count += 1);
    return new Promise((resolve, reject) => {
      const request = new Request(parts.slice(1), resolve, reject);
      this.#open.set(id, request);
      signal?.addEventListener("abort", () => this.#drop(id, signal.reason));
      this.#send({ type: "ask", id, method, path, text: parts[0], more: parts.length > 1, last: headers["Last-Event-ID"] ?? "" });
    });
  };

  /** Takes a message of a request; false for any other. */
  take(message) {
    if (message.type !== "reply" && message.type !== "next") return false;
    const request = this.#open.get(message.id);
    if (!request) return true;
    if (message.type === "next") {
      const text = request.parts.shift() ?? "";
      this.#send({ type: "part", id: message.id, text, more: request.parts.length > 0 });
      return true;
    }
    request.take(message, () => this.#drop(message.id));
    if (!message.more) this.#open.delete(message.id);
    else if (request.stream && message.text) setTimeout(() => this.#next(message.id), PAUSE_MS);
    else this.#next(message.id);
    return true;
  }

  #next(id) {
    if (this.#open.has(id)) this.#send({ type: "next", id });
  }

  #drop(id, reason = null) {
    const request = this.#open.get(id);
    if (!request) return;
    this.#open.delete(id);
    if (reason) request.fail(reason);
    this.#send({ type: "drop", id });
  }

  #send(message) {
    this.#frames?.send(message);
  }
}

class Request {
  stream = null; // what writes into the body of an answer that comes as events
  #status = 0;
  #text = "";
  #pack = new TextEncoder();

  constructor(parts, resolve, reject) {
    this.parts = parts;
    this.resolve = resolve;
    this.reject = reject;
  }

  take({ status, events, text, more }, cancel) {
    this.#status ||= status;
    if (events) {
      const start = (stream) => (this.stream = stream);
      const headers = { "Content-Type": "text/event-stream" };
      this.resolve(new Response(new ReadableStream({ start, cancel }), { status: this.#status, headers }));
    }
    if (this.stream) {
      if (text) this.stream.enqueue(this.#pack.encode(text));
      if (!more) this.stream.close();
      return;
    }
    this.#text += text; // of a JSON answer a half is none
    if (!more) this.resolve(new Response(this.#text, { status: this.#status, headers: { "Content-Type": "application/json" } }));
  }

  fail(reason) {
    if (this.stream) this.stream.error(reason);
    else this.reject(reason);
  }
}
