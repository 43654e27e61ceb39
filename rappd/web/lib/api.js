/** Requests to the daemon that served this page, and the one shape of everything that goes wrong. */

import { linkProof, NoKeyError, signAnew, signature } from "./operator-key.js";

const SIGNATURE = "X-Rappd-Signature";
const RESIGNED = ["not_signed", "late_signature"];

/** Says `answered` or `lost` after each request, so that the banner need not ask. */
export const connection = new EventTarget();

let carrier = null;

/** Sends requests by `other(path, options)`, which resolves to a `Response` as `fetch` does: a phone's page has its own way. */
export const carryBy = (other) => (carrier = other);

/** A refusal of the daemon, or that it cannot be reached (`code` "away"). */
export class Problem extends Error {
  constructor({ error, do: todo = "", code = "failed", ...rest }, status = 0) {
    super(error || "It didn't work.");
    this.todo = todo;
    this.code = code;
    this.status = status;
    this.file = rest.file;
    this.line = rest.line;
    this.reason = rest.reason;
    this.rest = rest;
    this.findings = Array.isArray(rest.findings) ? rest.findings : [];
  }

  get away() {
    return this.code === "away";
  }
}

const WITHOUT_KEY = {
  error: "This window keeps no key for the operator's session, as some private windows do. You can still chat.",
  code: "no_key",
};

/**
 * Trades the key of a start link for the operator's session of this browser. Raises `Problem` when it is too old, or
 * the browser keeps no key.
 */
export async function openSession(key) {
  let json;
  try {
    json = await linkProof(key);
  } catch (found) {
    if (!(found instanceof NoKeyError)) throw found;
    throw new Problem(WITHOUT_KEY);
  }
  return ask("/operator/session", { method: "POST", json });
}

/** `fetch`, signed by the operator's key. Raises `Problem` when the daemon cannot be reached. */
export async function send(path, { method = "GET", json, form, headers = {}, signal } = {}) {
  const { type, body } = await bytesOf(json, form);
  const all = { ...(type && { "Content-Type": type }), ...headers };
  const once = async () => {
    const signed = !carrier && (await signature({ method, path, type: all["Content-Type"], body }));
    if (signed) all[SIGNATURE] = signed;
    else delete all[SIGNATURE];
    try {
      return await (carrier ?? fetch)(path, { method, headers: all, body, signal, cache: "no-store" });
    } catch (found) {
      if (found.name === "AbortError") throw found;
      throw lost();
    }
  };
  let response = await once();
  if (await refusedToSign(response.status, () => response.clone().json())) response = await once();
  connection.dispatchEvent(new Event("answered"));
  return response;
}

/** A body as the bytes that are sent, so that just these are signed. */
async function bytesOf(json, form) {
  if (json !== undefined) return { type: "application/json", body: new TextEncoder().encode(JSON.stringify(json)) };
  if (form === undefined) return {};
  const packed = new Response(form);
  try {
    return { type: packed.headers.get("Content-Type") ?? "", body: new Uint8Array(await packed.arrayBuffer()) };
  } catch {
    throw new Problem({ error: "The file can't be read any more.", code: "unreadable" });
  }
}

/** True when a request was refused unread for its signature, and a new one may be good: once. */
async function refusedToSign(status, json) {
  if (status !== 403) return false;
  const { code, now } = await Promise.resolve().then(json).catch(() => ({}));
  if (!RESIGNED.includes(code)) return false;
  signAnew(now);
  return true;
}

/** The JSON answer of a request; raises `Problem` for every answer that is not one. */
export async function ask(path, options) {
  return answerOf(await send(path, options));
}

export const get = (path) => ask(path);
export const post = (path, json = {}) => ask(path, { method: "POST", json });
export const remove = (path) => ask(path, { method: "DELETE" });

/**
 * Sends a file as the body of a POST and gives the answer. `moved({phase, done, whole})` tells how far it is:
 * "upload", then the phases of the daemon; `signal` breaks it off. Raises as `ask` does. (`fetch` cannot tell
 * how far an upload is.)
 */
export async function upload(path, file, options = {}) {
  const request = await uploaded(path, file, options);
  const again = await refusedToSign(request.status, () => JSON.parse(request.responseText));
  const { isEvents, last, responseText, status } = again ? await uploaded(path, file, options) : request;
  const body = isEvents ? last : parsed(responseText, status);
  if (isEvents && !["done", "error"].includes(body?.type)) throw lost();
  if (status < 400 && !body.error) return body;
  throw refused(body, body.status ?? status);
}

async function uploaded(path, file, { moved = () => undefined, signal }) {
  const type = "application/octet-stream";
  const signed = await signature({ method: "POST", path, type, body: file });
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.setRequestHeader("Content-Type", type);
    if (signed) request.setRequestHeader(SIGNATURE, signed);
    request.setRequestHeader("Accept", "text/event-stream");
    request.upload.addEventListener("progress", ({ loaded, total }) => moved({ phase: "upload", done: loaded, whole: total }));
    let read = 0;
    let last = null;
    const readEvents = () => {
      const end = request.responseText.lastIndexOf("\n\n");
      for (const event of end > read ? request.responseText.slice(read, end).split("\n\n") : []) {
        last = event.startsWith("data: ") ? JSON.parse(event.slice(6)) : last;
        if (last?.type === "progress") moved(last);
      }
      read = Math.max(read, end + 2);
    };
    const isEvents = () => Boolean(request.getResponseHeader("Content-Type")?.startsWith("text/event-stream"));
    request.addEventListener("progress", () => isEvents() && readEvents());
    request.addEventListener("error", () => reject(lost()));
    request.addEventListener("abort", () => reject(new DOMException("Cancelled.", "AbortError")));
    request.addEventListener("load", () => {
      connection.dispatchEvent(new Event("answered"));
      if (isEvents()) readEvents();
      const { responseText, status } = request;
      resolve({ isEvents: isEvents(), last, responseText, status });
    });
    signal?.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** Saves an answer as a file. (A plain link could not carry the signature.) */
export async function download(path, filename) {
  const response = await send(path);
  if (!response.ok) throw refused(await readJson(response), response.status);
  saveAs(await response.blob(), filename);
}

/** A POST whose answer takes a while: each event before it is given to `told(event)`. Raises as `ask` does. */
export async function postWithEvents(path, json, told) {
  const response = await send(path, { method: "POST", json, headers: { Accept: "text/event-stream" } });
  if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) return answerOf(response);
  for await (const { data } of eventsOf(response)) {
    if (data.type === "done") return data;
    if (data.type === "error") throw refused(data, data.status);
    told(data);
  }
  throw lost();
}

/**
 * Follows a stream of events: yields `{id, data}` with `data` parsed. Ends when the stream ends;
 * raises `Problem` when it is refused or breaks off.
 */
export async function* follow(path, options) {
  const response = await send(path, options);
  if (!response.ok) throw refused(await readJson(response), response.status);
  yield* eventsOf(response);
}

async function* eventsOf(response) {
  try {
    for await (const event of sse(response.body)) {
      if (event.data) yield { id: event.id, data: JSON.parse(event.data) };
    }
  } catch (found) {
    if (found.name === "AbortError") throw found;
    throw lost();
  }
}

/** Says that the daemon cannot be reached; gives the problem to throw. */
export function lost() {
  connection.dispatchEvent(new Event("lost"));
  return new Problem({ error: "The computer isn't answering.", do: "`rappd start`", code: "away" });
}

function refused(body, status) {
  const problem = new Problem(body, status);
  if (["not_operator", "not_signed"].includes(problem.code)) connection.dispatchEvent(new Event("not-operator"));
  return problem;
}

async function answerOf(response) {
  const body = await readJson(response);
  if (!response.ok || body.error) throw refused(body, response.status);
  return body;
}

async function readJson(response) {
  try {
    const body = await response.json();
    return body && typeof body === "object" ? body : {};
  } catch {
    return response.ok ? {} : wordless(response.status);
  }
}

function parsed(text, status) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return wordless(status);
  }
}

const wordless = (status) => ({ error: `The answer was ${status}, without words.`, do: "`rappd doctor`" });

const KEPT_MS = 10_000;

/** Saves `content` (a Blob, or text) under `filename`. */
export function saveAs(content, filename) {
  const blob = content instanceof Blob ? content : new Blob([content], { type: "application/octet-stream" });
  const address = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: address, download: filename });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}

/** A new random id (UUID, version 4), also on plain http, where `crypto.randomUUID` is not. */
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const octets = crypto.getRandomValues(new Uint8Array(16));
  octets[6] = (octets[6] & 0x0f) | 0x40;
  octets[8] = (octets[8] & 0x3f) | 0x80;
  const hex = [...octets].map((octet) => octet.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** Yields `{id, event, data}` for each complete event; a piece cut off at the end is dropped. */
export async function* sse(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = "";
  let fields = blank();
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      // A lone CR at the end may be half of a CRLF: it waits for the next piece.
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line !== "") {
          read(line, fields);
          continue;
        }
        if (fields.id !== null) id = fields.id;
        if (fields.data.length) yield { id, event: fields.event, data: fields.data.join("\n") };
        fields = blank();
      }
    }
  } finally {
    reader.cancel().catch(() => undefined); // already broken: nothing is left to give back
  }
}

function blank() {
  return { id: null, event: "message", data: [] };
}

function read(line, fields) {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") fields.data.push(value);
  else if (name === "id") fields.id = value;
  else if (name === "event") fields.event = value;
}
