/** State of phones: the registered ones, and the pairing that goes on now. */

import { Problem } from "../../lib/api.js";
import { daemon } from "../../lib/daemon-state.js";
import { daemonEvents } from "../../lib/event-stream.js";
import * as operations from "../../lib/operations.js";

const CLOSED = { state: "closed" };
const LIVE = ["open", "compare", "waiting"];

class Devices extends EventTarget {
  /** Every row of `GET /devices`, the newest first. */
  rows = [];
  /** The answer of `GET /devices/window`: the code that is shown, the digits to compare, or how it ended. */
  pairing = CLOSED;
  #text = "";
  #answers = 0;

  /** Keeps the state as long as the page lives; the daemon says when a phone came, went or asks. */
  start() {
    const learn = () => (daemon.operator ? this.touch() : this.#take([], CLOSED));
    daemon.addEventListener("operator", learn);
    daemon.addEventListener("back", () => daemon.operator && learn());
    daemonEvents.addEventListener("devices", () => this.touch());
    learn();
  }

  /** Asks anew. Says `change` when something is different, `asks` when a phone waits for the owner. Raises `Problem`. */
  async look() {
    const before = this.#answers;
    const [{ devices = [] }, pairing] = await Promise.all([operations.devices.list(), operations.devices.window()]);
    this.#take(devices, before === this.#answers ? pairing : this.pairing); // one of before a change is old
    return this;
  }

  /** Asks anew without waiting; views that show the state are told. */
  touch() {
    this.look().catch((found) => {
      if (!(found instanceof Problem)) throw found; // lists show their own problems
    });
  }

  /** The answer of a request that changed the pairing. */
  took(pairing) {
    this.#answers += 1;
    this.#take(this.rows, pairing);
  }

  /** The phone of that id, or undefined. */
  device(id) {
    return this.rows.find((row) => row.id === id);
  }

  #take(rows, pairing) {
    const before = this.pairing;
    this.rows = rows;
    this.pairing = pairing.state ? pairing : CLOSED;
    const { remaining: _, ...lasting } = this.pairing;
    const text = JSON.stringify([rows, lasting]);
    if (text === this.#text) return;
    this.#text = text;
    this.dispatchEvent(new Event("change"));
    if (this.pairing.state === "compare" && (before.state !== "compare" || before.id !== this.pairing.id))
      this.dispatchEvent(new Event("asks"));
  }
}

export const devices = new Devices();

/** True while a phone can still join by this pairing. */
export const isLive = ({ state }) => LIVE.includes(state);
