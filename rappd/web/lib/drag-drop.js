/** Drag and drop of files: the shown page takes them, if it accepts them. */

import { fill, h, icon } from "./dom.js";

/**
 * `wanted(target)` gives what a drop on that element would do, `{words, take(files)}`, or null. While a file
 * hovers over a page that wants it, a overlay says the words; elsewhere a drop does nothing.
 */
export function acceptDrops(wanted) {
  const words = h("span", {});
  const overlay = h("div", { class: "drop-overlay", hidden: true }, h("p", {}, icon("file"), words));
  document.body.append(overlay);
  const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
  const over = (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    const here = wanted(event.target);
    event.dataTransfer.dropEffect = here ? "copy" : "none";
    overlay.hidden = !here;
    if (here) fill(words, here.words);
  };
  addEventListener("dragenter", over);
  addEventListener("dragover", over);
  addEventListener("dragleave", (event) => event.relatedTarget === null && (overlay.hidden = true));
  addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    overlay.hidden = true;
    wanted(event.target)?.take([...event.dataTransfer.files]);
  });
}
