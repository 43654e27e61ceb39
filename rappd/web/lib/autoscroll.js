/** Keeps the end of a list in view while the reader is at the end. */

const NEAR_PX = 80;

/**
 * Follows the end of `scroller` while the reader is within 80 px of it; else shows `pill`. `content` is what grows in it.
 * `grew()` after content was added, `toEnd()` to go there, `close()` when done.
 */
export function autoscroll(scroller, pill, content = scroller) {
  let near = true;
  let top = scroller.scrollTop;
  const distance = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  // Only who goes up leaves the end: word of the way there comes late, and more may have been added meanwhile.
  const look = () => {
    if (distance() <= NEAR_PX) near = pill.hidden = true;
    else if (scroller.scrollTop < top) near = false;
    top = scroller.scrollTop;
  };
  const toEnd = () => {
    scroller.scrollTop = scroller.scrollHeight;
    top = scroller.scrollTop;
    near = true;
    pill.hidden = true;
  };
  // The keyboard of a phone makes the list shorter, not longer, and a turn that was not laid out (`content-visibility`)
  // gets its height without a word: the end stays in view.
  const resized = new ResizeObserver(() => near && toEnd());
  resized.observe(scroller);
  if (content !== scroller) resized.observe(content);
  scroller.addEventListener("scroll", look, { passive: true });
  pill.addEventListener("click", () => (toEnd(), scroller.focus({ preventScroll: true })));
  return {
    toEnd,
    grew() {
      if (near) toEnd();
      else pill.hidden = false;
    },
    close: () => resized.disconnect(),
  };
}
