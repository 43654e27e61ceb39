/** The daemon's operations, by noun and verb. Made by docs/make_reference.py from the code. */

import { ask } from "./api.js";

/** A function that takes an operation's arguments by name; `options` are those of `ask`. */
const asks = (method, path) => (given = {}, options = {}) => {
  const rest = { ...given };
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    delete rest[name];
    return encodeURIComponent(given[name]);
  });
  if (method === "POST" || method === "PUT") return ask(filled, { ...options, method, json: rest });
  const query = new URLSearchParams(rest).toString();
  return ask(query ? `${filled}?${query}` : filled, { ...options, method });
};

export const calls = {
  /** Asks a `peer`: its brainstem (`text`), a `twin` of it, or one `agent` with `args`. `wait`: seconds. */
  ask: asks("POST", "/call"),
  /** Stops what a `peer` does for the call with that `id`; the call is then answered so. */
  cancel: asks("POST", "/call/cancel"),
  /** Asks `peers`, a list or `all`, at once; `which`: the `first` that gets it done, or `all` within `wait` seconds. */
  broadcast: asks("POST", "/call/broadcast"),
};

export const legacy = {
  /** The state of the legacy listener: open or closed, addresses, allowed callers. */
  show: asks("GET", "/legacy"),
  /** Opens it to published brainstems at `addresses` alone; `scopes`: what they may do beside talk. */
  open: asks("POST", "/legacy"),
  /** Closes it for good. */
  close: asks("DELETE", "/legacy"),
};

export const outbox = {
  /** The outbox: what waits for other machines; without `?waiting=1` also recent results. */
  list: asks("GET", "/outbox"),
  /** Sends a call to the machine `peer`: for one that was set up anew, or that came back with a snapshot. */
  redirect: asks("POST", "/outbox/{id}/redirect"),
  /** Tries one now. */
  retry: asks("POST", "/outbox/{id}/retry"),
  /** Cancels a waiting call. */
  drop: asks("DELETE", "/outbox/{id}"),
};

export const pairings = {
  /** Begins pairing with `peer` (a name or an address); `fingerprint` or `code` settle it at once. */
  begin: asks("POST", "/pairings"),
  /** The state of a pairing; with `?state=` it waits up to 20 s for another state than that. */
  show: asks("GET", "/pairings/{attempt}"),
  /** Confirms a pairing: if the words are the `same`, and `whose` the other machine is. */
  confirm: asks("POST", "/pairings/{attempt}"),
  /** Wants no pairing. */
  stop: asks("DELETE", "/pairings/{attempt}"),
};

export const peers = {
  /** Paired machines, found ones, who asks to be paired, and how each way of finding does. */
  list: asks("GET", "/peers"),
  /** Writes an `address` down, and says who answers there; `http://` ones are published brainstems. */
  add: asks("POST", "/peers"),
  /** Takes a written-down `address` out again. */
  forget: asks("POST", "/peers/forget"),
  /** One peer, and what of it may be used here. */
  show: asks("GET", "/peers/{peer}"),
  /** Calls a peer `name` here. */
  rename: asks("POST", "/peers/{peer}/rename"),
  /** Sets what a peer may do here: `scopes`, a list of capabilities. */
  scopes: asks("POST", "/peers/{peer}/scopes"),
  /** Sets if the brainstem here may use a peer's agents: `on`. */
  offer: asks("POST", "/peers/{peer}/offer"),
  /** Ends the trust in a peer, at once. */
  revoke: asks("POST", "/peers/{peer}/revoke"),
  /** Says HELLO to every peer, and tells who answered how fast. */
  hello: asks("POST", "/peers/hello"),
};

export const tokens = {
  /** Lists issued tokens, the latest first, without their texts. */
  list: asks("GET", "/tokens"),
  /** A token for a program: its `name`, `caps` (what it may do), `days`. Its text is in this answer alone. */
  issue: asks("POST", "/tokens"),
  /** A permission for a machine, which it may pass on narrower: `peer` or `fingerprint`, `caps`, perhaps `uses`, `days`. */
  capability: asks("POST", "/tokens/capability"),
  /** Passes a permission of this machine on, narrower: `chain` (texts), `to`, `caps`, perhaps `uses`, `days`. */
  narrow: asks("POST", "/tokens/narrow"),
  /** Takes one back, at once. One that another machine made is taken back by its whole ID. */
  revoke: asks("DELETE", "/tokens/{jti}"),
};
