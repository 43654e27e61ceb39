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

export const buddies = {
  /** The present state of a buddy: stage, mood, energy, experience. Changes nothing. */
  status: asks("GET", "/twins/{twin}/buddy"),
  /** Does an `action`: feed, pet, explore, post, comment, heartbeat, remember, recall, status; `text` and `kind` for those that take them. */
  act: asks("POST", "/twins/{twin}/buddy"),
};

export const calls = {
  /** Asks a `peer`: its brainstem (`text`), a `twin` of it, or one `agent` with `args`. `wait`: seconds. */
  ask: asks("POST", "/call"),
  /** Stops what a `peer` does for the call with that `id`; the call is then answered so. */
  cancel: asks("POST", "/call/cancel"),
  /** Asks `peers`, a list or `all`, at once; `which`: the `first` that gets it done, or `all` within `wait` seconds. */
  broadcast: asks("POST", "/call/broadcast"),
};

export const checkpoints = {
  /** Keeps a twin as it is now, with all that was said; a `note` may be given. It may be running meanwhile. */
  make: asks("POST", "/twins/{twin}/checkpoints"),
  /** Moments that a twin can be brought back to, oldest first. */
  list: asks("GET", "/twins/{twin}/checkpoints"),
  /** Brings a twin back to a `checkpoint`, or the latest; only says what would change, unless `confirm` is true. */
  rollback: asks("POST", "/twins/{twin}/checkpoints/rollback"),
};

export const fleet = {
  /** Every machine of the roster, asked now, this one first; `?timeout=` seconds for each. */
  status: asks("GET", "/fleet"),
  /** Archives the twins that `filter` means on every machine; only says which, unless `confirm` is true. */
  archiveEstate: asks("POST", "/fleet/archive_estate"),
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

export const schedule = {
  /** The schedule of snapshots: its rule, next moment and last outcome; null when there is none. */
  show: asks("GET", "/neighborhood/schedule"),
  /** Takes snapshots by `rule` in `zone` from now on, and keeps the last `keep` whole ones of them. */
  set: asks("PUT", "/neighborhood/schedule"),
  /** Takes no more snapshots; those that are there stay. Raises ``NotFoundError`` when none is set. */
  switchOff: asks("DELETE", "/neighborhood/schedule"),
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

export const twins = {
  /** Active twins, each with the `model` of its own where it has one; `?state=archived` or `purged` lists those. */
  list: asks("GET", "/twins"),
  /** One twin, active or archived, with its soul and files, and the `model` of its own where it has one. */
  show: asks("GET", "/twins/{twin}"),
  /** Mints a twin: `name`, and perhaps `kind` and `soul`. With `unique`, not beside another of that name. */
  new: asks("POST", "/twins"),
  /** Gives it another `name`; identity and folder stay. */
  rename: asks("POST", "/twins/{twin}/rename"),
  /** A new twin that begins as its copy; `name` may be given. The original is stopped meanwhile, and is started again. */
  fork: asks("POST", "/twins/{twin}/fork"),
  /** Starts it on a port of its own. */
  boot: asks("POST", "/twins/{twin}/boot"),
  /** Stops it. */
  stop: asks("POST", "/twins/{twin}/stop"),
  /** Its soul, and the souls before: `number`, `at`, `reason`, oldest first. */
  soul: asks("GET", "/twins/{twin}/soul"),
  /** Puts a `soul` in force; the one before is kept. */
  editSoul: asks("PUT", "/twins/{twin}/soul"),
  /** Puts soul `number` of the history in force again. */
  restoreSoul: asks("POST", "/twins/{twin}/soul/restore"),
  /** Family trees, as rows in preorder; `?twin=` for one. */
  lineage: asks("GET", "/twins/lineage"),
  /** Sets aside all twins that `filter` means; only says which, unless `confirm` is true. */
  archiveMatching: asks("POST", "/twins/archive"),
  /** Sets it aside; a `reason` may be given. */
  archive: asks("POST", "/twins/{twin}/archive"),
  /** Brings it back; it stays stopped. */
  unarchive: asks("POST", "/twins/{twin}/unarchive"),
  /** Deletes an archived twin; only says which, unless `confirm` is true. */
  purge: asks("POST", "/twins/{twin}/purge"),
};
