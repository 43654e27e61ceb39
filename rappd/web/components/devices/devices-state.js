/** State of phones: the registered ones, and the pairing that goes on now. */

import { daemonEvents } from "../../lib/event-stream.js";
import { KeptState } from "../../lib/kept-state.js";
import * as operations from "../../lib/operations.js";

const CLOSED = { state: "closed" };
const LIVE = ["open", "compare", "waiting"];

class Devices extends KeptState {
  /** Every row of `GET /devices`, the newest first. */
  rows = [];
  /** The answer of `GET /devices/window`: the code that is shown, the digits to compare, or how it ended. */
  pairing = CLOSED;
  #answers = 0;

  /** The daemon says when a phone came, went or asks. */
  start() {
    super.start();
    daemonEvents.addEventListener("devices", () => this.touch());
  }

  /** Asks anew. Says `change` when something is different, `asks` when a phone waits for the owner. Raises `Problem`. */
  async look() {
    const before = this.#answers;
    const [{ devices = [] }, pairing] = await Promise.all([operations.devices.list(), operations.devices.window()]);
    this.#take(devices, before === this.#answers ? pairing : this.pairing); // one of before a change is old
    return this;
  }

  forget() {
    this.#take([], CLOSED);
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
    if (!this.keep({}, [rows, lasting])) return;
    if (this.pairing.state === "compare" && (before.state !== "compare" || before.id !== this.pairing.id))
      this.dispatchEvent(new Event("asks"));
  }
}

export const devices = new Devices();

/** True while a phone can still join by this pairing. */
export const isLive = ({ state }) => LIVE.includes(state);
