// Eggs between this phone and the computer: over HTTP, each with a token of its own, with its progress shown.

import { element } from "./element.js";
import { announce } from "./web/lib/live-region.js";

const PROTECTED = () => location.protocol === "https:";

/** Builds the part of the menu and the line with the progress; `update()` draws what changed. */
export function eggs(session) {
  const waiting = element("div", { className: "waiting" });
  const choose = element("input", { type: "file", hidden: true, ariaLabel: "Egg to send" });
  const send = element("button", { type: "button", onclick: () => choose.click() }, "Send an egg to the computer");
  const save = element("button", { type: "button" }, "Save this conversation as an egg");
  const menu = element("div", { className: "eggs", hidden: true }, save, send, choose);
  const line = element("div", { className: "transfer", hidden: true });
  let drawn = "";

  const start = (words, work) => {
    (menu.closest("dialog") ?? waiting.closest("dialog"))?.close(); // it would cover the question
    ask(line, words, (ended) => run(words, work, ended));
  };
  const run = async (words, work, ended) => {
    line.replaceChildren();
    line.hidden = false;
    const bar = element("progress", { max: 1, value: 0, ariaLabel: words });
    const note = element("p", {}, `${words}…`);
    const stop = element("button", { type: "button", onclick: () => ended.abort() }, "Stop");
    line.append(note, bar, stop);
    announce(note.textContent, line);
    const moved = (done, whole) => {
      bar.value = whole ? done / whole : 0;
      note.textContent = `${words}: ${whole ? Math.floor((100 * done) / whole) : 0} %, ${megabytes(done)} of ${megabytes(whole)}`;
    };
    try {
      const told = await work(await session.eggToken(), moved, ended.signal);
      finish(line, told);
    } catch (error) {
      finish(line, error.name === "AbortError" ? "Stopped. Nothing was kept." : error.message || "It did not work.");
    }
  };
  save.onclick = () => start("Saving the conversation", (token, moved, signal) => fetchEgg("session", token, moved, signal));
  choose.onchange = () => {
    const [file] = choose.files;
    choose.value = "";
    if (file) start(`Sending ${file.name}`, (token, moved, signal) => sendEgg(file, token, moved, signal));
  };
  const update = () => {
    menu.hidden = !session.eggs.may;
    const next = JSON.stringify(session.eggs.offers);
    if (next === drawn) return;
    drawn = next;
    waiting.replaceChildren(...session.eggs.offers.map((one) => element("p", { className: "offer" },
      element("span", {}, `${one.name}, ${megabytes(one.size)}, waits for you.`),
      element("button", { type: "button", onclick: () => start(`Saving ${one.name}`,
        (token, moved, signal) => fetchEgg(one.id, token, moved, signal)) }, "Save"))));
  };
  return { menu, line, waiting, update };
}

/** Asks the person first where the page came in the clear, because the egg goes so, too. */
function ask(line, words, go) {
  const ended = new AbortController();
  if (PROTECTED()) {
    go(ended);
    return;
  }
  line.hidden = false;
  line.replaceChildren(
    element("p", {}, `${words}: files are not encrypted on this Wi-Fi; others on it could read them.`),
    element("div", { className: "buttons" },
      element("button", { type: "button", onclick: () => { line.hidden = true; } }, "Stop"),
      element("button", { type: "button", onclick: () => go(ended) }, "Send anyway")));
  announce(line.querySelector("p").textContent, line);
  line.querySelector("button").focus();
}

function finish(line, words) {
  announce(words, line);
  line.replaceChildren(
    element("p", {}, words),
    element("button", { type: "button", onclick: () => { line.hidden = true; } }, "OK"));
}

async function fetchEgg(id, token, moved, signal) {
  const response = await fetch(`/tether/v2/eggs/${id}`, { headers: { Authorization: `Bearer ${token}` }, signal });
  if (!response.ok) throw new Error(wordsOf(await response.json()));
  const whole = Number(response.headers.get("Content-Length"));
  const name = decodeURIComponent(response.headers.get("X-Rappd-Name") ?? "session.egg");
  const pieces = [];
  let done = 0;
  for (const reader = response.body.getReader(); ;) {
    const { done: over, value } = await reader.read();
    if (over) break;
    pieces.push(value);
    done += value.length;
    moved(done, whole);
  }
  if (done !== whole) throw new Error("It did not come whole. Try again.");
  const address = URL.createObjectURL(new Blob(pieces, { type: "application/octet-stream" }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  return `${name} is on this phone.`;
}

/** `fetch` cannot tell how far an upload is. */
function sendEgg(file, token, moved, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/tether/v2/eggs");
    request.setRequestHeader("Authorization", `Bearer ${token}`);
    request.setRequestHeader("X-Rappd-Name", encodeURIComponent(file.name));
    request.upload.onprogress = ({ loaded, total }) => moved(loaded, total);
    request.onerror = () => reject(new Error("It did not get through. Try again."));
    request.onabort = () => reject(new DOMException("", "AbortError"));
    request.onload = () => {
      if (request.status < 400) resolve(`${file.name} is sent. It waits for approval on the computer.`);
      else reject(new Error(wordsOf(JSON.parse(request.responseText))));
    };
    signal.onabort = () => request.abort();
    request.send(file);
  });
}

const wordsOf = (problem) => [problem.error, problem.do].filter(Boolean).join(" ");
const megabytes = (size) => (size < 1e6 ? `${Math.ceil(size / 1e3)} kB` : `${(size / 1e6).toFixed(1)} MB`);
