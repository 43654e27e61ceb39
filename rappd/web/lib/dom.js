/** Elements without markup strings: nothing here parses HTML, so nothing here can be injected into. */

const ICONS = new URL("../icons/", import.meta.url);
const SVG = "http://www.w3.org/2000/svg";
const drawings = new Map(); // name → promise of the file's root element

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

/** A drawing from `icons/`, in the colour of the text around it. */
export function icon(name, className = "icon") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("viewBox", "0 0 24 24");
  drawing(name).then(
    (source) => svg.append(...source.cloneNode(true).childNodes),
    () => drawings.delete(name), // the words beside it do; the next one asks again
  );
  return svg;
}

/** Fetches drawings before they are needed: later the daemon may be away. */
export const prepareIcons = (names) => names.forEach((name) => icon(name));

/** A sentence whose `backticked` parts are commands: an array of strings and `<code>` elements. */
export function words(text) {
  return String(text ?? "")
    .split(/`([^`]+)`/)
    .map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

/** Text that only screen readers get. */
export const unseen = (text) => h("span", { class: "unseen" }, text);

/** Replaces what is inside `element`. */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

function drawing(name) {
  if (!drawings.has(name)) drawings.set(name, fetchDrawing(new URL(`${name}.svg`, ICONS)));
  return drawings.get(name);
}

/** By XMLHttpRequest, because it alone gives a parsed document without a string in between. */
function fetchDrawing(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.responseType = "document";
    request.onload = () =>
      request.responseXML ? resolve(request.responseXML.documentElement) : reject(request.status);
    request.onerror = reject;
    request.open("GET", address);
    request.send();
  });
}

function present(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== "");
}
