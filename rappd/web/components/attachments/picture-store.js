/** Pictures of turns: in memory, in this browser's own database, or recorded by the daemon. */

import { Problem } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import * as operations from "../../lib/operations.js";

export const MOST_PICTURES = 4;
const MOST_TURNS = 60; // of which this browser keeps the pictures; the daemon has them all
const STORE = "pictures";
const MOST_TOGETHER = 4 << 20;

/** Keeps the pictures of a turn in this browser, so that a reload sends and shows the same ones. */
export async function keepPictures({ id, at, pictures }) {
  if (!complete(pictures)) return;
  await inStore("readwrite", (store) => store.put({ id, at, pictures }));
  const all = (await inStore("readonly", (store) => store.getAllKeys())) ?? [];
  for (const old of all.slice(0, -MOST_TURNS)) await inStore("readwrite", (store) => store.delete(old));
}

/** The pictures of a turn with their data; null when they are nowhere to be had. */
export async function picturesOf(turn) {
  if (!turn.pictures?.length) return [];
  if (complete(turn.pictures)) return turn.pictures;
  const places = [turn, ...(turn.shownIn ? [turn.shownIn] : [])];
  for (const place of places) {
    const found = (await kept(place)) ?? (await recorded(place));
    if (!complete(found)) continue;
    turn.pictures = found.map((one, at) => ({ ...turn.pictures[at], ...one }));
    return turn.pictures;
  }
  return null;
}

/** As a request has them; null when one is missing. */
export async function asSent(turn) {
  const found = await picturesOf(turn);
  return found && found.map(({ type, data, name }) => ({ type, data, ...(name && { name }) }));
}

/** Pictures of earlier turns that go along, by turn: the newest ones, as many as a request may have. */
export async function ofEarlier(turns) {
  const found = new Map();
  let count = 0;
  let size = 0;
  for (const turn of turns.toReversed()) {
    const pictures = (await asSent(turn)) ?? [];
    count += pictures.length;
    size += pictures.reduce((sum, { data }) => sum + data.length * 0.75, 0);
    if (count > MOST_PICTURES || size > MOST_TOGETHER) break;
    if (pictures.length) found.set(turn, pictures);
  }
  return found;
}

const complete = (pictures) => Boolean(pictures?.length) && pictures.every(({ data }) => data);

async function kept({ id, at }) {
  const row = at ? await inStore("readonly", (store) => store.get([at, id])) : null;
  return row?.pictures ?? null;
}

async function recorded({ id, thread }) {
  if (!thread || !daemon.reads) return null;
  try {
    return (await operations.threads.pictures({ thread, turn: id })).pictures ?? null;
  } catch (found) {
    if (found instanceof Problem) return null;
    throw found;
  }
}

let opened = null;

function database() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("rappd-pictures", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: ["at", "id"] });
    request.onsuccess = () => {
      request.result.onversionchange = () => request.result.close(); // it is to be deleted
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
  });
  return opened;
}

/** The result of one request; undefined where the browser keeps nothing, as in some private windows. */
async function inStore(mode, work) {
  try {
    const store = (await database()).transaction(STORE, mode).objectStore(STORE);
    return await new Promise((resolve, reject) => {
      const request = work(store);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch (found) {
    if (found instanceof DOMException) return undefined;
    throw found;
  }
}
