/** Keeps the end of a list in view while the reader is at the end. */

const NEAR_PX = 80;

/**
 * Follows the end of `scroller` while the reader is within 80 px of it; else shows `pill`.
 * `grew()` after content was added, `toEnd()` to go there, `close()` when done.
 */
export function autoscroll(scroller, pill) {
  let near = true;
  const distance = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  const look = () => {
    near = distance() <= NEAR_PX;
    if (near) pill.hidden = true;
  };
  const toEnd = () => {
    scroller.scrollTop = scroller.scrollHeight;
    near = true;
    pill.hidden = true;
  };
  // The keyboard of a phone makes the list shorter, not longer: the end stays in view.
  const resized = new ResizeObserver(() => near && toEnd());
  resized.observe(scroller);
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
