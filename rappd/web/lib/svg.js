/** Pictures: elements of SVG, and words that fit into them. */

const SVG = "http://www.w3.org/2000/svg";
const paper = document.createElement("canvas").getContext("2d"); // to measure on

/** An element of SVG. */
export function s(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Words at a place. */
export function text(className, x, y, words) {
  const element = s("text", { class: className, x, y });
  element.textContent = words;
  return element;
}

/** As much of `words` as fits into `space` px; what is too long loses its middle, its last `tail` stays. */
export function fitting(words, font, space, tail = 1 / 3) {
  paper.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  let shown = words;
  for (let most = words.length - 1; most > 4 && paper.measureText(shown).width > space; most -= 1) {
    const end = Math.floor(most * tail);
    shown = `${words.slice(0, most - end)}…${words.slice(words.length - end)}`;
  }
  return shown;
}
