/** Something that the browser saves as a file. */

const KEPT_MS = 10_000;

/** Saves `content` (a Blob, or text) under `filename`. */
export function saveAs(content, filename) {
  const blob = content instanceof Blob ? content : new Blob([content], { type: "application/octet-stream" });
  const address = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: address, download: filename });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
