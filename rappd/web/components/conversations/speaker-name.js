/** Names for people in place of the ids of a record. */

import { daemon } from "../../lib/daemon-state.js";
import { machines } from "../machines/machines-state.js";

export const NOBODY_SPECIAL = "c0p110t0-aaaa-bbbb-cccc-123456789abc"; // who asks without saying who (RAPP v1 §8)

/** "you", this machine, "Weather", or "kitchen_91c3" where it is another machine's. */
export function speakerName(id) {
  if (id === NOBODY_SPECIAL) return "you";
  const [, name, key] = /^(.+?)(?:-[0-9a-f]{8})?_([0-9a-f]{4})[0-9a-f]*$/.exec(id) ?? [];
  if (!name) return id;
  if (!daemon.health?.node?.endsWith(`_${key}`)) {
    const peer = machines.paired.find((row) => row.short === key);
    if (!peer) return `${name}_${key}`;
    return name === "brainstem" ? peer.name : `${name} on ${peer.name}`;
  }
  return name === "brainstem" ? daemon.name : name;
}
