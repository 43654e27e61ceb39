// Events as they come in: a view of what the agent keeps.

const API = "/api/webhook";
const said = document.getElementById("said");
const list = document.getElementById("events");
const filter = document.getElementById("filter");
const address = document.getElementById("address");

let events = [];
let shown = "";

address.textContent = `${location.origin}${API}/ingest`;
watch(refresh);
filter.addEventListener("input", draw);

document.getElementById("copy").addEventListener("click", () =>
  attempt(async () => {
    if (!navigator.clipboard) {
      getSelection().selectAllChildren(address);
      say("The address is selected; copy it with your keyboard.");
      return;
    }
    await navigator.clipboard.writeText(address.textContent);
    say("Copied.");
  }),
);

document.getElementById("test").addEventListener("click", () =>
  attempt(async () => {
    const payload = { sent_at: new Date().toISOString() };
    await ask("POST", "/ingest", { source: "this page", event_type: "test", summary: "A test event", payload });
    say("A test event came in.");
    await refresh();
  }),
);

async function refresh() {
  const found = await ask("GET", "/events");
  const text = JSON.stringify(found.events);
  if (text === shown) return;
  shown = text;
  events = found.events;
  draw();
}

function draw() {
  const open = new Set([...list.querySelectorAll("details[open]")].map((node) => node.dataset.key));
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = events.filter((event) => {
    const text = JSON.stringify(event).toLowerCase();
    return words.every((word) => text.includes(word));
  });
  list.replaceChildren(...fitting.map((event) => drawEvent(event, open)));
  if (fitting.length === 0) {
    list.append(make("li", { className: "soft", textContent: events.length ? "None of them." : "Nothing has come in yet." }));
  }
}

function drawEvent(event, open) {
  const key = `${event.received_at} ${event.summary}`;
  const when = make("time", { className: "soft", textContent: local(event.received_at) });
  when.setAttribute("datetime", event.received_at);
  const details = make(
    "details",
    { open: open.has(key) },
    make(
      "summary",
      {},
      make("strong", { textContent: event.summary }),
      make("span", { className: "soft", textContent: `${event.source}, ${event.event_type}, ` }),
      when,
    ),
    make("pre", { textContent: JSON.stringify(event.payload, null, 2), tabIndex: 0 }),
  );
  details.dataset.key = key;
  return make("li", { className: "card" }, details);
}

function local(text) {
  const when = new Date(text);
  return Number.isNaN(when.getTime()) ? String(text) : when.toLocaleString();
}
