/** An answer's Markdown as elements that cannot run, style, submit, or fetch from elsewhere. */

import DOMPurify from "../../vendor/dompurify/purify.js";
import { Marked } from "../../vendor/marked/marked.js";
import { h } from "../../lib/dom.js";

const PLAIN_TAGS = /<\/?(b|br|del|details|em|hr|i|ins|kbd|mark|p|s|small|strong|sub|summary|sup|u)\s*\/?>/gi;

const marked = new Marked({ gfm: true, breaks: true });
marked.use({
  renderer: {
    // Other HTML is shown as the text it is: an answer has no business writing our page.
    html({ text }) {
      return text.replace(PLAIN_TAGS, "").includes("<") ? escape(text) : text;
    },
    checkbox({ checked }) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

const RULES = {
  USE_PROFILES: { html: true },
  FORBID_TAGS: [
    "style",
    "form",
    "input",
    "button",
    "textarea",
    "select",
    "option",
    "dialog",
    "audio",
    "video",
    "source",
    "picture",
    "map",
    "area",
  ],
  FORBID_ATTR: [
    "style",
    "class",
    "id",
    "name",
    "srcset",
    "background",
    "tabindex",
    "autofocus",
    "popover",
    "contenteditable",
  ],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** A fragment to put into an answer. `final` adds what only a finished answer needs (copy buttons). */
export function markdown(text, { final = true } = {}) {
  const fragment = DOMPurify.sanitize(marked.parse(text), RULES);
  for (const link of fragment.querySelectorAll("a")) leaveSafely(link);
  for (const image of fragment.querySelectorAll("img")) {
    if (!isOurs(image.getAttribute("src") ?? "")) image.replaceWith(pictureElsewhere(image));
  }
  levelHeadings(fragment);
  for (const table of fragment.querySelectorAll("table")) wrap(table, "table");
  for (const block of fragment.querySelectorAll("pre")) {
    block.tabIndex = 0;
    if (final) addCopy(block);
  }
  return fragment;
}

/** The page's own headings are levels 1 and 2: those of an answer begin at 3, and none leaves a level out. */
function levelHeadings(fragment) {
  const all = [...fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")];
  const levelOf = (heading) => Number(heading.tagName[1]);
  const first = Math.min(...all.map(levelOf));
  let last = 2;
  for (const heading of all) {
    last = Math.min(levelOf(heading) - first + 3, last + 1, 6);
    heading.replaceWith(h(`h${last}`, {}, [...heading.childNodes]));
  }
}

function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function leaveSafely(link) {
  if (!/^(https?|mailto):/i.test(link.getAttribute("href") ?? "")) {
    link.removeAttribute("href");
    return;
  }
  link.setAttribute("rel", "noopener noreferrer");
  link.setAttribute("target", "_blank");
}

function isOurs(source) {
  if (/^data:image\/(png|jpeg|gif|webp);/i.test(source)) return true;
  try {
    return new URL(source, location.href).origin === location.origin;
  } catch {
    return false;
  }
}

/** Loading a picture tells its host that the answer was read; a link leaves that to the reader. */
function pictureElsewhere(image) {
  const source = image.getAttribute("src") ?? "";
  const title = image.getAttribute("alt") || "picture";
  if (!/^https?:/i.test(source)) return document.createTextNode(title);
  const host = new URL(source).host;
  return h(
    "a",
    { href: source, rel: "noopener noreferrer", target: "_blank" },
    `${title} (picture at ${host}, not loaded)`,
  );
}

function wrap(element, className) {
  const box = h("div", { class: `scroll-${className}`, tabindex: 0 });
  element.replaceWith(box);
  box.append(element);
}

function addCopy(block) {
  const text = block.textContent;
  const button = h("button", { type: "button", class: "quiet small copy-code" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  const box = h("div", { class: "code-block" });
  block.replaceWith(box);
  box.append(block, button);
}
