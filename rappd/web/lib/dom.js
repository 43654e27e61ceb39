/** Elements without markup strings: nothing here parses HTML, so nothing here can be injected into. */

const ICONS = new URL("../icons/icons.svg", import.meta.url);
const SVG = "http://www.w3.org/2000/svg";
let icons = null; // promise of the document with all icons

/**
 * Makes an element. `attributes` whose value is a function are listeners (`onclick`), `true` sets an
 * empty attribute, `false`, `null` and `undefined` set none. Children: nodes, strings, arrays, or nothing.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...present(children));
  return element;
}

/** A button with `words` that calls `run` at a click; `look` is its class. */
export const actionButton = (words, run, look = "secondary", attributes = {}) =>
  h("button", { type: "button", class: look, onclick: run, ...attributes }, words);

/** An icon of `icons/icons.svg` in the colour of the text around it. */
export function icon(name, className = "icon") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("viewBox", "0 0 24 24");
  fetchIcons().then(
    (all) => svg.append(...all.getElementById(name).cloneNode(true).childNodes),
    () => (icons = null), // the words beside it do; the next icon asks again
  );
  return svg;
}

/** A sentence whose `backticked` parts are commands: an array of strings and `<code>` elements. */
export function withCode(text) {
  return String(text ?? "")
    .split(/`([^`]+)`/)
    .map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

/** A name that may break after its signs and between its words, `Slow_archivist` and `HackerNews`, so never inside a word. */
export const breakable = (name) =>
  String(name ?? "")
    .split(/(?<=[_\-./@:])(?=[^_\-./@:\s])|(?<=\p{Ll})(?=\p{Lu})/u)
    .flatMap((part, index) => (index ? [h("wbr"), part] : [part]));

/** Text that only screen readers get. */
export const visuallyHidden = (text) => h("span", { class: "visually-hidden" }, text);

/** Replaces what is inside `element`. */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

/** Fetches all icons once, by XMLHttpRequest: it alone gives a parsed document without a string in between. */
function fetchIcons() {
  icons ??= new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.responseType = "document";
    request.onload = () => (request.responseXML ? resolve(request.responseXML) : reject(request.status));
    request.onerror = reject;
    request.open("GET", ICONS);
    request.send();
  });
  return icons;
}

function present(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== "");
}

/** Calls `heard` at every event `type` of the sources. Returns a function that ends this. */
export function listen(type, sources, heard) {
  for (const source of sources) source.addEventListener(type, heard);
  return () => {
    for (const source of sources) source.removeEventListener(type, heard);
  };
}

/** Puts a text where Paste takes it from, also on plain http. */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const back = document.activeElement;
  const field = Object.assign(document.createElement("textarea"), { value: text, readOnly: true });
  field.className = "visually-hidden";
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  back?.focus();
}
