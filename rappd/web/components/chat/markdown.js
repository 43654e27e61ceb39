/** An answer's Markdown as elements that cannot run, style, submit, or fetch from elsewhere. */

import DOMPurify from "../../vendor/dompurify/purify.js";
import { Marked } from "../../vendor/marked/marked.js";
import { copyText, h } from "../../lib/dom.js";

const PLAIN_TAGS = /<\/?(b|br|del|details|em|hr|i|ins|kbd|mark|p|s|small|strong|sub|summary|sup|u)\s*\/?>/gi;

const WITHIN_TEXT = /^data:image\/(png|jpeg|gif|webp);/i;
const CODE_MARK = "x-code-"; // in `lang` until the text is sanitised
const FORMULA_MARK = "x-formula";
const INLINE_FORMULA = /^(?:\\\((.+?)\\\)|\$(?!\s)((?:\\.|[^\\$\n])+?)(?<!\s)\$(?!\d))/s;
const DISPLAY_FORMULA = /^(?:\$\$(.+?)\$\$|\\\[(.+?)\\\])/s;

const marked = new Marked({ gfm: true, breaks: true });
// `\(x\)`, `$x$`, `$$x$$` and `\[x\]`, none of them within code.
marked.use({
  extensions: [
    {
      name: "formulaBlock",
      level: "block",
      start: (text) => text.match(/\$\$|\\\[/)?.index,
      tokenizer: (text) => formula("formulaBlock", DISPLAY_FORMULA.exec(text)),
      renderer: ({ tex }) => `<div lang="${FORMULA_MARK}-block">${escape(tex)}</div>`,
    },
    {
      name: "formula",
      level: "inline",
      start: (text) => text.match(/\$|\\\(|\\\[/)?.index,
      tokenizer: (text) =>
        formula("formulaBlock", DISPLAY_FORMULA.exec(text)) ?? formula("formula", INLINE_FORMULA.exec(text)),
      renderer: ({ tex }) => `<span lang="${FORMULA_MARK}">${escape(tex)}</span>`,
    },
  ],
});
marked.use({
  renderer: {
    // Other HTML is shown as the text it is: an answer has no business writing our page.
    html({ text }) {
      return text.replace(PLAIN_TAGS, "").includes("<") ? escape(text) : text;
    },
    code({ text, lang }) {
      const language = languageMark(lang?.trim().split(/\s/)[0] ?? "");
      return `<pre${language && ` lang="${language}"`}><code>${escape(text)}\n</code></pre>`;
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
    if (!WITHIN_TEXT.test(image.getAttribute("src") ?? "")) image.replaceWith(pictureElsewhere(image));
  }
  levelHeadings(fragment);
  for (const table of fragment.querySelectorAll("table")) wrap(table);
  for (const block of fragment.querySelectorAll("pre")) {
    block.tabIndex = 0;
    if (final) addCopy(block);
  }
  const code = marksOf(fragment, CODE_MARK);
  const formulas = marksOf(fragment, FORMULA_MARK);
  if (final && code.length)
    import("../answers/code-highlight.js").then(({ highlightCode }) => highlightCode(code)).catch(plainStays);
  if (final && formulas.length)
    import("../answers/formulas.js").then(({ drawFormulas }) => drawFormulas(formulas)).catch(plainStays);
  return fragment;
}

const languageMark = (name) =>
  /^[\w+#.-]{1,30}$/.test(name) ? CODE_MARK + name.toLowerCase().replaceAll("#", "sharp") : "";

function formula(type, match) {
  const tex = (match?.[1] ?? match?.[2])?.trim();
  return tex ? { type, raw: match[0], tex } : undefined;
}

/** Without the daemon a library cannot be fetched: the text is there as it was written. */
function plainStays(found) {
  if (!(found instanceof TypeError)) throw found;
}

/** Elements that the reader above marked, with their marks taken off. */
function marksOf(fragment, start) {
  return [...fragment.querySelectorAll(`[lang^="${start}"]`)].map((place) => {
    const mark = place.lang;
    place.removeAttribute("lang");
    return { place, mark };
  });
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

/**
 * Loading a picture tells its host that the answer was read, and here even a GET may change something: so one of this
 * machine waits for a press of Load, and one of another stays a link.
 */
function pictureElsewhere(image) {
  const source = image.getAttribute("src") ?? "";
  const title = image.getAttribute("alt") || "Picture";
  const address = URL.parse(source, location.href);
  if (!source || !/^https?:$/.test(address?.protocol)) return document.createTextNode(title);
  const name = h("span", {}, title, " ", h("span", { class: "soft" }, address.href));
  if (address.origin !== location.origin)
    return h(
      "span",
      { class: "picture" },
      name,
      h("a", { href: address.href, rel: "noopener noreferrer", target: "_blank" }, "Open in a new tab"),
    );
  const load = h("button", { type: "button", class: "secondary small" }, "Load");
  load.setAttribute("aria-label", `Load ${title}`);
  const place = h("span", { class: "picture" }, name, load);
  load.addEventListener("click", () => {
    const picture = h("img", { src: address.href, alt: title });
    picture.addEventListener("load", () => picture.dispatchEvent(new Event("grew", { bubbles: true })));
    picture.addEventListener("error", () => picture.replaceWith(title, " could not be loaded."));
    place.replaceWith(picture);
  });
  return place;
}

function wrap(element) {
  const box = h("div", { class: "scroll-table", tabindex: 0 });
  element.replaceWith(box);
  box.append(element);
}

function addCopy(block) {
  const text = block.textContent;
  const button = h("button", { type: "button", class: "quiet small copy-code" }, "Copy");
  button.addEventListener("click", async () => {
    await copyText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  const box = h("div", { class: "code-block" });
  block.replaceWith(box);
  box.append(block, button);
}
