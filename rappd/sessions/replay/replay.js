// Replays the transcript that the window around this frame hands in, or that is in a chosen egg. Text is text here.
"use strict";

const STEP_MS = 900;
const list = document.querySelector(".events");
const form = document.querySelector(".scrubber");
const [play, range, output] = form.children;
let nonce;
let events = [];
let rows = [];
let shown = [0, 0]; // rows from the first to before the second are shown
let timer = 0;

addEventListener("message", ({ source, data }) => {
  if (source !== parent || parent === window || !data || typeof data !== "object") return;
  if (nonce !== undefined && data.nonce !== nonce) return;
  if (data.kind === "cart_init" || data.kind === "egg_init") {
    nonce = data.nonce;
    begin(data.transcript, data.participants, data.title);
    const outside = data.scrubber === "outside"; // title and scrubber stand around this frame
    document.querySelector("header").classList.toggle("unseen", outside);
    form.hidden = outside || events.length === 0;
    seek(data.event ?? Infinity);
  } else if (data.kind === "cart_seek") {
    seek(data.event);
  }
});

document.querySelector("input[type=file]").onchange = async ({ target }) => {
  const egg = JSON.parse(await target.files[0].text());
  begin(egg.transcript, egg.participants, egg.title);
  form.hidden = events.length === 0;
  seek(Infinity);
};

function begin(transcript, participants, title) {
  events = Array.isArray(transcript) ? transcript : [];
  document.querySelector("h1").textContent = title || "Session";
  document.querySelector(".people").textContent = (participants ?? []).map(({ name }) => name).join(", ");
  document.querySelector(".empty").hidden = true;
  rows = events.map(row);
  shown = [0, rows.length];
  list.replaceChildren(...rows);
  range.max = Math.max(0, events.length - 1);
}

/** Shows everything up to the event of that number, from where the screens were last cleared. */
function seek(number) {
  let end = events.length;
  while (end > 0 && events[end - 1].event > number) end -= 1;
  const start = Math.max(0, events.findLastIndex(({ kind }, index) => kind === "clear" && index < end));
  for (let index = Math.min(start, shown[0]); index < Math.max(end, shown[1]); index += 1)
    rows[index].hidden = index < start || index >= end;
  rows[shown[1] - 1]?.classList.remove("now");
  shown = [start, end];
  rows[end - 1]?.classList.toggle("now", end < events.length);
  list.scrollTop = list.scrollHeight;
  range.value = end - 1;
  output.textContent = `${end} of ${events.length}`;
}

function row({ kind, by, data }) {
  const text = [data?.text, data?.error && data?.do].filter(Boolean).join(" ");
  const made = document.createElement("li");
  if (kind === "operator_input" || kind === "twin_response") {
    made.className = kind === "operator_input" ? "asked" : data?.error ? "failed" : "";
    made.append(Object.assign(document.createElement("span"), { className: "by", textContent: by }));
  } else {
    made.className = "aside";
  }
  const words = kind === "tool_dispatch" ? `${by} uses ${text}` : text;
  made.append(Object.assign(document.createElement("p"), { textContent: words }));
  if (!words) made.style.display = "none";
  return made;
}

function stop() {
  clearInterval(timer);
  timer = 0;
  play.textContent = "Play";
}

range.oninput = () => seek(events[range.value]?.event ?? 0);
play.onclick = () => {
  if (timer) {
    stop();
    return;
  }
  if (shown[1] === events.length) seek(events[0].event);
  play.textContent = "Pause";
  timer = setInterval(() => {
    if (shown[1] < events.length) seek(events[shown[1]].event);
    else stop();
  }, STEP_MS);
};

if (parent !== window) parent.postMessage({ kind: "cart_ready", seeks: true }, "*"); // says nothing that is secret
