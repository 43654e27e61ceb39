/** Opens cartridges: chosen, dropped, taken from the daemon, or kept in this browser. */

import { daemon } from "../../lib/daemon-state.js";
import { lost, Problem } from "../../lib/api.js";
import { cartridges } from "../../lib/operations.js";
import { withSignatures } from "../eggs/egg-upload.js";
import { store, stored, storedNames } from "../../lib/storage.js";

const KEPT = "cartridge ";
const SIGNATURE = ".sig";
const SOON_MS = 400;

/** The one that is open, `current`, null without one. Says `change`. */
class Opened extends EventTarget {
  current = null;
  #place = ""; // where it is kept in this browser
  #soon = 0;

  take(cartridge, place) {
    this.current?.pause();
    if (this.#soon) this.#keep(this.current);
    this.current = cartridge;
    this.#place = place;
    cartridge?.addEventListener("change", () => this.#changed(cartridge));
    this.dispatchEvent(new Event("change"));
  }

  /** Stores a paused program, so that a reload loses nothing; of many steps the last. */
  #changed(cartridge) {
    if (cartridge !== this.current || !["paused", "waiting", "done"].includes(cartridge.state)) return;
    clearTimeout(this.#soon);
    if (cartridge.stepped) this.#soon = setTimeout(() => this.#keep(cartridge), SOON_MS);
    else this.#keep(cartridge);
  }

  #keep(cartridge) {
    clearTimeout(this.#soon);
    this.#soon = 0;
    const { name, file } = cartridge;
    cartridge.kept = store(this.#place, { name, file, at: Date.now(), text: cartridge.saved().text });
    if (!cartridge.kept) store(this.#place, null);
  }
}

export const opened = new Opened();

/** Opens the first cartridge of `files`; a `.sig` among them tells who signed it. Throws what is wrong. */
export async function openFiles(files) {
  const [file, beside] = withSignatures(files).find(([{ name }]) => !name.endsWith(SIGNATURE)) ?? [];
  if (!file)
    throw new Problem({
      error: "A signature alone can't run.",
      do: "Choose the .lispy.json with it.",
      code: "alone",
    });
  await open(file.name, new Uint8Array(await file.arrayBuffer()), beside && (await beside.text()));
}

/** Makes a cartridge. Its program runs by forty modules: they are fetched for the first that is opened, or once the page has settled. */
async function made(...given) {
  const { Cartridge } = await import("./cartridge-state.js").catch((found) => {
    throw found instanceof TypeError ? lost() : found; // what `import()` raises where the daemon is away
  });
  return new Cartridge(...given);
}

/** Opens one in the folder of the agents of the daemon, or of one of its twins, by its key. */
export async function openHere(name, twin) {
  const { cartridge } = await cartridges.read({ file: name, twin });
  take(await made(name, new TextEncoder().encode(cartridge.text), cartridge.signer), cartridge.notes);
}

/** Goes on with one that this browser kept. */
export async function openKept(place) {
  const { file, text } = stored(place);
  take(await made(file, new TextEncoder().encode(text)), [], place);
}

/** `{place, name, file, at}` of each that this browser kept, the latest first. */
export const allKept = () =>
  storedNames(KEPT)
    .map((place) => ({ place, ...stored(place) }))
    .sort((one, other) => other.at - one.at);

/** Forgets one of these. */
export const forget = (place) => store(place, null);

async function open(name, octets, signature) {
  const cartridge = await made(name, octets);
  if (!signature) return take(cartridge, []);
  const found = await signerOf(name, octets, signature);
  cartridge.signer = found.signer;
  take(cartridge, found.notes);
}

function take(cartridge, notes, place = `${KEPT}${Date.now()}`) {
  cartridge.said = notes;
  opened.take(cartridge, place);
}

async function signerOf(name, octets, signature) {
  if (!daemon.operator) return { signer: { unknown: true }, notes: [] }; // only the operator may ask
  try {
    return await cartridges.signer({ name, sha256: await digest(octets), signature });
  } catch (found) {
    if (!(found instanceof Problem)) throw found;
    return { signer: { unknown: true }, notes: [] };
  }
}

async function digest(octets) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", octets));
  return [...hash].map((one) => one.toString(16).padStart(2, "0")).join("");
}
