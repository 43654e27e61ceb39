/** Words that were searched for: where they are in a text, and marking them in what is shown. */

const NAME = "found-words"; // of the highlight; css/chat/conversations.css colours it

const pattern = (words) =>
  new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "giu");

/** `text` in parts `{text, found}`: those that are one of `words`, and what lies between. */
export function wordParts(text, words) {
  const wanted = words.filter(Boolean);
  if (!wanted.length) return [{ text, found: false }];
  const parts = [];
  let from = 0;
  for (const { 0: found, index } of text.matchAll(pattern(wanted))) {
    if (index > from) parts.push({ text: text.slice(from, index), found: false });
    parts.push({ text: found, found: true });
    from = index + found.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), found: false });
  return parts;
}

/**
 * Marks `words` in the text of `elements`, changing none of it, and returns the range of the first, or null. What was
 * marked before is marked no more.
 */
export function markWords(elements, words) {
  const ranges = elements.flatMap((element) => rangesIn(element, words));
  if (globalThis.CSS?.highlights) {
    if (ranges.length) CSS.highlights.set(NAME, new Highlight(...ranges));
    else CSS.highlights.delete(NAME);
  }
  return ranges[0] ?? null;
}

function rangesIn(element, words) {
  const ranges = [];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    let at = 0;
    for (const { text, found } of wordParts(texts.currentNode.data, words)) {
      if (found) {
        const range = new Range();
        range.setStart(texts.currentNode, at);
        range.setEnd(texts.currentNode, at + text.length);
        ranges.push(range);
      }
      at += text.length;
    }
  }
  return ranges;
}
