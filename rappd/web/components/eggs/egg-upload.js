/** Uploads an egg with its signature file, and discards one that was uploaded. */

import { Problem } from "../../lib/api.js";
import { eggs } from "../../lib/operations.js";

const SIGNATURE = ".sig";
const LONGEST = 2000; // of one file's signature; a longer one is none, and is refused as that

/** `[file, its .sig]` for each of `files`, undefined without one; a `.sig` goes with the file it is of. */
export function withSignatures(files) {
  const named = new Map([...files].map((file) => [file.name, file]));
  const belongs = ({ name }) => name.endsWith(SIGNATURE) && named.has(name.slice(0, -SIGNATURE.length));
  return [...files].filter((file) => !belongs(file)).map((file) => [file, named.get(file.name + SIGNATURE)]);
}

/** Takes it to the daemon, where it waits unhatched; the answer says what it is, and what it would do. */
export async function uploadEgg(file, signature, { moved, signal }) {
  const text = signature && (await signature.slice(0, LONGEST).text());
  return eggs.layDown({ name: file.name, ...(text && { signature: text }) }, file, { moved, signal });
}

/** Discards an uploaded egg; otherwise the daemon does so after a day. Where that fails, nothing is said. */
export async function discardEgg(id) {
  try {
    await eggs.discard({ id });
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
  }
}
