/** Colours for the code of an answer. Fetched with its library when the first such answer is shown. */

import DOMPurify from "../../vendor/dompurify/purify.js";

const MARK = "x-code-";
const MOST_CHARACTERS = 60_000;
const RULES = { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true };

/** Colours `blocks` ({place, mark}), whose mark is their language, in place. Unknown languages stay as they are. */
export async function highlightCode(blocks) {
  const { default: library } = await import("../../vendor/highlight/highlight.js");
  for (const { place, mark } of blocks) {
    const language = mark.slice(MARK.length);
    const code = place.querySelector("code");
    if (!library.getLanguage(language) || code.textContent.length > MOST_CHARACTERS) continue;
    const { value } = library.highlight(code.textContent, { language, ignoreIllegals: true });
    const coloured = DOMPurify.sanitize(value, RULES);
    for (const span of coloured.querySelectorAll("span")) onlyOurClasses(span);
    code.replaceChildren(coloured);
  }
}

function onlyOurClasses(span) {
  const names = [...span.classList].filter((name) => /^(hljs-[\w-]+|[\w-]+_)$/.test(name));
  span.className = names.join(" ");
}
