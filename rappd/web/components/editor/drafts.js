/** Texts of agent files that are not saved: kept in the browser until they are saved or thrown away. */

import { store, stored, storedNames } from "../../lib/storage.js";

const PREFIX = "agent-draft.";
const nameOf = (key, file) => `${PREFIX}${key}.${file}`;

/** The draft of a file of the brainstem, or of the twin `key`: `{key, file, text, base, at}`, or null. */
export const draftOf = (key, file) => stored(nameOf(key, file));

/** Keeps a draft; `base` is the SHA-256 of the file that it changes. False where the browser keeps nothing. */
export const keepDraft = (key, file, text, base) =>
  store(nameOf(key, file), { key, file, text, base, at: Date.now() });

/** Throws a draft away. */
export const dropDraft = (key, file) => store(nameOf(key, file), null);

/** Every draft, the newest first. */
export const allDrafts = () =>
  storedNames(PREFIX)
    .map((name) => stored(name))
    .filter(Boolean)
    .sort((one, other) => other.at - one.at);
