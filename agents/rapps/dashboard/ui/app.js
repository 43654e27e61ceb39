// Numbers over time: a view of what the agent keeps. Each line is also a table.

const API = "/api/dashboard";
const SVG = "http://www.w3.org/2000/svg";
const said = document.getElementById("said");
const home = document.getElementById("metrics");
const known = document.getElementById("known");
const form = document.getElementById("log");
const sure = document.getElementById("sure");

let shown = "";
let doomed = null;

watch(refresh);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const { metric, value } = form.elements;
    const number = value.value.trim().replace(",", ".");
    await ask("POST", `/${encodeURIComponent(metric.value.trim())}`, { value: number });
    say(`${metric.value.trim()} is ${number}.`);
    value.value = "";
    await refresh();
  });
});

sure.addEventListener("close", () => {
  if (sure.returnValue !== "delete" || !doomed) return;
  attempt(async () => {
    await ask("DELETE", `/${encodeURIComponent(doomed)}`);
    say(`${doomed} is deleted.`);
    await refresh();
  });
});

async function refresh() {
  const { metrics } = await ask("GET");
  const text = JSON.stringify(metrics);
  if (text === shown) return;
  const names = Object.keys(metrics);
  const found = await Promise.all(names.map((name) => ask("GET", `/${encodeURIComponent(name)}`)));
  shown = text;
  const open = new Set([...home.querySelectorAll("details[open]")].map((node) => node.dataset.key));
  known.replaceChildren(...names.map((name) => make("option", { value: name })));
  home.replaceChildren(...found.map((metric) => drawMetric(metric, open)));
  if (names.length === 0) home.append(make("p", { className: "soft", textContent: "No number is kept yet. Log one above." }));
}

function drawMetric(metric, open) {
  const name = metric.metric;
  const remove = make("button", { type: "button", className: "bad", textContent: "Delete", onclick: () => confirmDelete(name) });
  remove.setAttribute("aria-label", `Delete ${name}`);
  const details = make("details", { open: open.has(name) }, make("summary", { textContent: "Points" }), table(metric.points));
  details.dataset.key = name;
  return make(
    "article",
    { className: "card" },
    make("h2", { textContent: name }),
    make("p", { className: "latest", textContent: short(metric.latest) }),
    line(metric),
    make("p", {
      className: "soft",
      textContent: `Average ${short(metric.average)}, ${short(metric.minimum)} to ${short(metric.maximum)}, ${count(metric.count)}, ${local(metric.updated_at)}`,
    }),
    details,
    remove,
  );
}

function confirmDelete(name) {
  doomed = name;
  sure.querySelector("h2").textContent = `Delete ${name}?`;
  sure.returnValue = "keep";
  sure.showModal();
}

/** The points as a line: newest at the right, lowest at the bottom. */
function line(metric) {
  const values = metric.points.map((point) => point.value);
  const low = Math.min(...values);
  const span = Math.max(...values) - low;
  const at = (value, index) => [
    values.length > 1 ? (index / (values.length - 1)) * 600 : 300,
    span ? 110 - ((value - low) / span) * 100 : 60,
  ];
  const svg = shape("svg", { viewBox: "0 0 600 120", preserveAspectRatio: "none", role: "img" });
  svg.setAttribute("aria-label", `${metric.metric}: ${count(values.length)} from ${short(values[0])} to ${short(values.at(-1))}`);
  svg.append(shape("line", { class: "ground", x1: 0, y1: 119, x2: 600, y2: 119 }));
  if (values.length > 1) {
    const points = values.map((value, index) => at(value, index).map((place) => place.toFixed(1)).join(","));
    svg.append(shape("polyline", { class: "line", points: points.join(" ") }));
  } else {
    const [x, y] = at(values[0], 0);
    svg.append(shape("line", { class: "line", x1: x - 20, y1: y, x2: x + 20, y2: y }));
  }
  return svg;
}

function table(points) {
  const rows = [...points].reverse().map((point) =>
    make("tr", {}, make("td", { textContent: local(point.recorded_at) }), make("td", { textContent: String(point.value) })),
  );
  const head = make("tr", {}, make("th", { scope: "col", textContent: "When" }), make("th", { scope: "col", textContent: "Value" }));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

function shape(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-6)) return value.toExponential(4);
  return value.toLocaleString(undefined, size < 1 ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 3 });
}

function count(points) {
  return points === 1 ? "1 point" : `${points} points`;
}

function local(text) {
  const when = new Date(text);
  return Number.isNaN(when.getTime()) ? String(text) : when.toLocaleString();
}
