/** The daemon's operations, by noun and verb. Made by docs/make_reference.py from the code. */

import { ask, download, postWithEvents, upload } from "./api.js";

/** The address, and the arguments that do not stand in it. "@" begins one of the brainstem, or of the `twin` that is given. */
const filled = (path, given) => {
  const { ...rest } = given;
  if (!rest.twin) delete rest.twin;
  const address = path.replace("@", rest.twin ? "/twins/{twin}" : "").replace(/\{(\w+)\}/g, (_, name) => {
    delete rest[name];
    return encodeURIComponent(given[name]);
  });
  return [address, rest];
};

const withQuery = ([address, rest]) => {
  const query = new URLSearchParams(rest).toString();
  return query ? `${address}?${query}` : address;
};

/** A function that takes an operation's arguments by name; `options` are those of `ask`. */
const asks = (method, path) => (given = {}, options = {}) => {
  if (method === "GET" || method === "DELETE") return ask(withQuery(filled(path, given)), { ...options, method });
  const [address, json] = filled(path, given);
  return ask(address, { ...options, method, json });
};

/** The same for one that takes a while: `told(event)` gets what comes before the answer. */
const follows = (path) => (given = {}, told = () => undefined) => postWithEvents(...filled(path, given), told);

/** The same for one that takes a file; `options` are those of `upload`. */
const takes = (path) => (given, file, options) => upload(withQuery(filled(path, given)), file, options);

/** The same for one that answers with a file, which is saved under `name`. */
const saves = (path) => (given, name) => download(withQuery(filled(path, given)), name);

export const agents = {
  /** Agent files and the agents they hold; `cards` tells what a screen needs about each. */
  list: asks("GET", "@/agents"),
  /** Quarantined code of agents, services and senses, and a quarantined `.env`: `path`, `why`, `origin`, `at`, `sha256`. */
  held: asks("GET", "@/agents/held"),
  /** An agent file's text; `fault` what is wrong with it, `read_only` why it cannot be edited. */
  source: asks("GET", "@/agents/source/{filename}"),
  /** Saves an edited file: `source`, and `base`, the SHA-256 of what was read, else 409. With `keep` faulty text, too; it does not run. */
  save: asks("PUT", "@/agents/source/{filename}"),
  /** An agent file as a download. */
  export: saves("@/agents/export/{filename}"),
  /** Earlier versions of an agent file, oldest first; with `generation`, the text of that one as `source`. */
  generations: asks("GET", "@/agents/generations/{filename}"),
  /** Brings a removed file back. */
  undo: asks("POST", "@/agents/undo"),
  /** Lets the present bytes of a quarantined file run; of any other, change structure. With the `sha256` that was read, no others. */
  approve: asks("POST", "@/agents/approve"),
  /** Takes a quarantined file out of its place; the answer's `undo` brings it back, quarantined as before. */
  refuse: asks("POST", "@/agents/refuse"),
  /** Writes a new agent file, refusing to replace one: `filename` and `source`, or `name` and `description` for one to fill in. */
  new: asks("POST", "@/agents/new"),
  /** Runs the contract tests over one `agent`, or over a text that is not saved: `filename` and `source`. */
  test: asks("POST", "@/agents/test"),
  /** Runs one agent with given arguments, as a recorded call. */
  run: asks("POST", "@/agents/run"),
  /** Takes an agent file out of service; the answer's `undo` brings it back. */
  remove: asks("DELETE", "@/agents/{filename}"),
};

export const anchors = {
  /** Compares the event log with its newest anchor, and lists kept anchors of other machines. */
  show: asks("GET", "/anchors"),
  /** Asks each machine of the same owner which anchors of this one it keeps. */
  ask: asks("POST", "/anchors/ask"),
  /** Drops the anchors that are kept of `peer`, evidence included. */
  forget: asks("POST", "/anchors/forget"),
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

export const cartridges = {
  /** The `.lispy.json` beside the agents of the brainstem and its twins; one that cannot be read says why in `problem`. */
  list: asks("GET", "/cartridges"),
  /** The `text` of one, and who signed it; `twin` is the key of the twin whose it is. */
  read: asks("GET", "/cartridges/{file}"),
  /** The signer of a file, by its `sha256` and the text of the `signature` that came with it. */
  signer: asks("POST", "/cartridges/signer"),
  /** Signs a cartridge (the body is the file, `?name=` what it is called) with this machine's key. */
  sign: takes("/cartridges/signature"),
};

export const checkpoints = {
  /** Keeps a twin as it is now, with all that was said; a `note` may be given. It may be running meanwhile. */
  make: asks("POST", "/twins/{twin}/checkpoints"),
  /** Moments that a twin can be brought back to, oldest first. */
  list: asks("GET", "/twins/{twin}/checkpoints"),
  /** Brings a twin back to a `checkpoint`, or the latest; only says what would change, unless `confirm` is true. */
  rollback: asks("POST", "/twins/{twin}/checkpoints/rollback"),
};

export const conversations = {
  /** Conversations, the latest first; `?removed=1` those taken off the list, `?before=` the `next` of the page before. */
  list: asks("GET", "/conversations"),
  /** Conversations in which something with all of `?words=` was said, with excerpts; `?below=` looks further back. */
  search: asks("GET", "/conversations/search"),
  /** The last turns of a conversation; `?before=` those before a turn, `?at=` those of the course that has a turn. */
  show: asks("GET", "/conversations/{thread}"),
  /** Gives it the title `title`; "" gives back the words that it began with. */
  rename: asks("POST", "/conversations/{thread}/rename"),
  /** Takes it off the list and out of searches. What was said stays in the event log. */
  remove: asks("POST", "/conversations/{thread}/remove"),
  /** Puts it back into the list. */
  restore: asks("POST", "/conversations/{thread}/restore"),
};

export const devices = {
  /** Lists registered phones, and whether they are connected now. */
  list: asks("GET", "/devices"),
  /** The code that is shown now, the digits to compare, or how it ended. */
  window: asks("GET", "/devices/window"),
  /** Shows a new code: perhaps `name`, `ttl` in seconds, `scope` (`talk` or `listen`), `user`. */
  openWindow: asks("POST", "/devices/window"),
  /** The QR code that is shown now, as the text of an SVG picture: `{svg}`. */
  qr: asks("GET", "/devices/window/qr"),
  /** Says whether both screens show the same digits: the window's `id`, `same`. */
  answer: asks("POST", "/devices/window/answer"),
  /** Takes the code back. */
  closeWindow: asks("DELETE", "/devices/window"),
  /** Shows a phone. */
  show: asks("GET", "/devices/{device}"),
  /** Changes a phone's `name`, `scope`, `workflows`, `eggs`, `notices` or `user`; what is left out stays. */
  change: asks("POST", "/devices/{device}"),
  /** Puts the egg at `path` on this machine there for a phone, until it fetched it or the daemon ends. */
  sendEgg: asks("POST", "/devices/{device}/eggs"),
  /** Removes a phone; its connection ends at once. */
  revoke: asks("DELETE", "/devices/{device}"),
};

export const eggs = {
  /** Eggs that were packed here and lie on this machine, the latest first; `file` is a name after what is inside. */
  laid: asks("GET", "/eggs/laid"),
  /** An egg that was packed here, as a download. */
  save: saves("/eggs/laid/{folder}/{name}"),
  /** The differences between two eggs: `before` and `after`, each `{id}` or `{path}`. */
  diff: asks("POST", "/eggs/diff"),
  /** Every hatching that has a receipt, the latest first. */
  hatchings: asks("GET", "/eggs/hatchings"),
  /** The senders whose eggs run their code without asking, and this machine's own key. */
  signers: asks("GET", "/eggs/signers"),
  /** Trusts the key with `fingerprint`, called `name`, until it is revoked. */
  trust: asks("POST", "/eggs/signers"),
  /** Ends the trust in a key. */
  revoke: asks("DELETE", "/eggs/signers/{fingerprint}"),
  /** Takes an egg in (the body is the file, `?name=` what it is called) and says what it is and would do. */
  layDown: takes("/eggs"),
  /** Looks at an egg on this machine (`path`) as at an uploaded one: `id` of the copy, what it is, and the plan. */
  look: follows("/eggs/look"),
  /** Hatches an egg (`id` or `path`). `approved` is the digest of the plan that was said yes to. */
  hatch: follows("/eggs/hatch"),
  /** Cancels the hatching or packing that was begun with the id `work`, and answers once it has ended. */
  cancel: asks("POST", "/eggs/cancel"),
  /** Packs a `twin`, or the brainstem; `form`, `item`, `into`, `exclude_memory`, `allow` as `rappd egg pack`. */
  pack: follows("/eggs/pack"),
  /** The plan for hatching an egg (`id`, or `path` on this machine), with the given `overwrite`. */
  plan: follows("/eggs/plan"),
  /** Hatches the agents that a short `text` stands for, out of a clone of their `registry`. Events and `work` as of `/eggs/hatch`. */
  hatchText: follows("/eggs/hatch-text"),
  /** Makes one egg, `into`, of two that one being lived apart, `ours` and `theirs`; both came from `base`. */
  merge: follows("/eggs/merge"),
  /** Undoes a hatching by its `receipt`; `even_if_changed` puts aside what changed since. */
  rollback: asks("POST", "/eggs/rollback"),
  /** Throws away an egg that waits here unhatched, unless another tab looks at it. */
  discard: asks("DELETE", "/eggs/{id}"),
  /** Eggs that other machines and phones sent, and nobody hatched or threw away yet, the latest first. */
  arrived: asks("GET", "/eggs/arrived"),
  /** Throws away an egg that another machine sent. */
  throwAway: asks("DELETE", "/eggs/arrived/{id}"),
  /** Sends an egg (`id` or `path`) to a `peer`, sealed for it; there it waits for its owner. */
  send: asks("POST", "/eggs/send"),
};

export const estate = {
  /** Shows the estate's file, or null, the links to what is in it, and estates of others that lie here as data. */
  show: asks("GET", "/estate"),
  /** Adds one entry by hand: what the owner made (`created`), or belongs to (`member`). */
  add: asks("POST", "/estate"),
  /** Removes one entry, by its `rappid` or the beginning of its tail. The thing itself stays where it is. */
  remove: asks("POST", "/estate/remove"),
  /** Adds whatever lives in this home and is missing. A damaged file is set aside and made anew. */
  rebuild: asks("POST", "/estate/rebuild"),
  /** Packs the estate with the eggs of its `twins` (without them: of all that live here) and of its neighborhoods. */
  pack: asks("POST", "/estate/pack"),
  /** Makes an estate that lies here as data (`kept` begins its key) an egg again, which waits at `path` for a day. */
  lay: asks("POST", "/estate/lay"),
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

export const memories = {
  /** Memories with every word of `query`, newest first; `offset` and `limit` page on. */
  list: asks("GET", "@/memories"),
  /** Lists people with memories: `user_guid` ("" for the shared ones), `count`, and `devices`, the phones that talk for them. */
  people: asks("GET", "@/memories/people"),
  /** Adds a memory: `message`, perhaps a `theme` and `tags`. */
  add: asks("POST", "@/memories"),
  /** Corrects `message`, `theme` or `tags` of a memory, if it is still `version`; else 409 with the present one. */
  change: asks("PUT", "@/memories/{key}"),
  /** Deletes a memory, if it is still `version`; the answer's `undo` brings it back. */
  delete: asks("DELETE", "@/memories/{key}"),
  /** Brings a deleted memory back: its `key`, and the `undo` of the answer to its deletion. */
  undo: asks("POST", "@/memories/undo"),
  /** Memories of a user's own, as `/memories` has them. */
  listOfUser: asks("GET", "@/users/{user}/memories"),
  /** Corrects a memory of a user's own, as `/memories/{key}` does. */
  changeOfUser: asks("PUT", "@/users/{user}/memories/{key}"),
  /** Deletes a memory of a user's own, as `/memories/{key}` does. */
  deleteOfUser: asks("DELETE", "@/users/{user}/memories/{key}"),
  /** Brings a deleted memory of a user's own back, as `/memories/undo` does. */
  undoOfUser: asks("POST", "@/users/{user}/memories/undo"),
};

export const models = {
  /** Models that can be chosen, with the `limits` that are known of each, and the current one (RAPP v1 §8). */
  list: asks("GET", "/models"),
  /** Tells if the model `?model=`, or the current one, takes `pictures`: true or false, or null where only trying tells. */
  pictures: asks("GET", "/models/pictures"),
  /** Chooses a model by id, or `auto`; the choice is kept. */
  set: asks("POST", "/models/set"),
  /** The model server found on this machine that waits for a yes, and those that are agents' processes. */
  local: asks("GET", "/models/local"),
  /** Says yes to the model server found on this machine; `server` names the one that was shown. */
  useLocal: asks("POST", "/models/local"),
  /** The model servers to choose between: those found here, those set up, and the one in use; no keys. */
  servers: asks("GET", "/models/servers"),
  /** Asks a model server one question before it is used: `works`, or the reason why not and what to do. */
  test: asks("POST", "/models/test"),
  /** Takes answers from a server of this `kind` from now on, with its `url`, `key`, `model`, `version`, `server`. */
  use: asks("POST", "/models/use"),
  /** Has `model` answer for a twin wherever nobody chose another, or `auto` for none of its own. */
  forTwin: asks("POST", "/twins/{twin}/model"),
  /** Tells which model answers the conversation `session_id`; with `model`, chooses it, or `auto` for none of its own. */
  forConversation: asks("POST", "@/chat/model"),
  /** Lets Ollama download a `model`; for callers that accept events, with its progress. `server` names one found here. */
  download: follows("/models/download"),
  /** Downloads of models under way: `model`, `server`, `status`, `completed` and `total` bytes. */
  downloads: asks("GET", "/models/downloads"),
  /** Stops the download of a `model`; what has arrived is kept by Ollama. */
  cancelDownload: asks("POST", "/models/download/cancel"),
};

export const neighborhoods = {
  /** Lists the neighborhoods that lie here, joined or not. */
  list: asks("GET", "/neighborhoods"),
  /** Creates a neighborhood `name`, with a sentence `about` it. */
  create: asks("POST", "/neighborhoods"),
  /** Packs a neighborhood's folder as an egg; `into`, `allow` and `overwrite` as of an egg. */
  pack: asks("POST", "/neighborhoods/{neighborhood}/pack"),
  /** Joins by an invite or a neighborhood's egg (`path` on this machine), or one that lies here (`name`). */
  join: asks("POST", "/neighborhoods/join"),
  /** Shows one neighborhood: its roster with presence, what is shared, what is published. */
  show: asks("GET", "/neighborhoods/{neighborhood}"),
  /** Writes an invite, good for `days`, `into` a file; `peer` counts a paired machine among the members. */
  invite: asks("POST", "/neighborhoods/{neighborhood}/invite"),
  /** Publishes `agent` with a `scope`: neighborhood, public, or personal, which takes it back. */
  publish: asks("POST", "/neighborhoods/{neighborhood}/publish"),
  /** Leaves a neighborhood; its files are set aside. */
  leave: asks("POST", "/neighborhoods/{neighborhood}/leave"),
};

export const notices = {
  /** Lists all that waits for the owner: why this machine is not ready, quarantined files, pairings, phones, received eggs, news. */
  waiting: asks("GET", "/waiting"),
  /** Lists what happened while nobody looked, the latest first. */
  list: asks("GET", "/notices"),
  /** Removes the notice `key`, or all of them with `all`. */
  dismiss: asks("POST", "/notices/dismiss"),
};

export const operator = {
  /** The state that the start screen and `rappd status` show; `url`, a link for the page, over the control socket. */
  status: asks("GET", "/operator/status"),
  /** A fresh one-use key, for `rappd open`; over the control socket alone. */
  key: asks("POST", "/operator/key"),
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
  /** Shows a peer, and what of it may be used here. */
  show: asks("GET", "/peers/{peer}"),
  /** Calls a peer `name` here. */
  rename: asks("POST", "/peers/{peer}/rename"),
  /** Keeps a line of `text` about a peer; "" forgets it. Nobody is told. */
  note: asks("POST", "/peers/{peer}/note"),
  /** Sets what a peer may do here: `scopes`, a list of capabilities. */
  scopes: asks("POST", "/peers/{peer}/scopes"),
  /** Sets if the brainstem here may use a peer's agents: `on`. */
  offer: asks("POST", "/peers/{peer}/offer"),
  /** Ends the trust in a peer, at once. */
  revoke: asks("POST", "/peers/{peer}/revoke"),
  /** Says HELLO to every peer, and tells who answered how fast. */
  hello: asks("POST", "/peers/hello"),
};

export const rapps = {
  /** Shipped and installed rapplications. */
  list: asks("GET", "/rapps"),
  /** Installs a shipped rapplication by id, or one from a folder or zip on this machine by path. */
  install: asks("POST", "/rapps/install"),
  /** Deletes a rapplication's files; what it remembered stays. */
  uninstall: asks("POST", "/rapps/uninstall"),
};

export const replays = {
  /** Checks the session egg at `path` on this machine and keeps a copy for a day, under the answer's `id`. */
  open: asks("POST", "/sessions/eggs"),
  /** A session egg that waits here, with its events, and `frame`: the path of the replay's page at `localhost`. */
  show: asks("GET", "/sessions/eggs/{id}"),
  /** Starts a session with the egg's events up to the number `at_event` (without it: all), and takes phones there. */
  branch: asks("POST", "/sessions/eggs/{id}/branch"),
};

export const schedule = {
  /** The schedule of snapshots: its rule, next moment and last outcome; null when there is none. */
  show: asks("GET", "/neighborhood/schedule"),
  /** Takes snapshots by `rule` in `zone` from now on, and keeps the last `keep` whole ones of them. */
  set: asks("PUT", "/neighborhood/schedule"),
  /** Takes no more snapshots; those that are there stay. Raises ``NotFoundError`` when none is set. */
  switchOff: asks("DELETE", "/neighborhood/schedule"),
};

export const search = {
  /** Everything that holds all words of `?words=`: conversations, agents, twins, memories, machines, settings; else agents alone. */
  find: asks("GET", "/search"),
};

export const sessions = {
  /** All sessions, the one opened last first: who is in them, and which one phones join. */
  list: asks("GET", "/sessions"),
  /** Starts a session, and takes all connected phones there. */
  open: asks("POST", "/sessions"),
  /** Goes back to a session: all connected phones move there, and phones that come later join it. */
  reopen: asks("POST", "/sessions/{id}/open"),
  /** A session (`current`: the one opened last) and a page of its events after the number `after`. */
  show: asks("GET", "/sessions/{id}"),
  /** Asks a participant: `text`, perhaps `to`, `event_id` (a UUID; a repeat is asked once), `wait` for the answer. */
  say: asks("POST", "/sessions/{id}/say"),
  /** Participants of a session, and those who could be invited: `possible` are paired machines, their agents, and what is written down. */
  participants: asks("GET", "/sessions/{id}/participants"),
  /** Invites `name`: `AGENT@PEER`, a paired machine, or a published brainstem that is written down. Never an address. */
  invite: asks("POST", "/sessions/{id}/participants"),
  /** Ends an invitation. */
  uninvite: asks("DELETE", "/sessions/{id}/participants/{name}"),
  /** Chooses who answers what is addressed to nobody: `name`, a participant or one to invite; the brainstem without one. */
  backend: asks("POST", "/sessions/{id}/backend"),
  /** Empties all screens; the record keeps what was said. */
  clear: asks("POST", "/sessions/{id}/clear"),
  /** Starts a session with this one's events up to the number `at_seq` (0: all), and takes phones there. */
  branch: asks("POST", "/sessions/{id}/branch"),
  /** Takes no further sentences. Phones see so, and stay until another session is opened. */
  close: asks("POST", "/sessions/{id}/close"),
};

export const settings = {
  /** Every setting, its value and where it came from; secrets only as set or not. */
  list: asks("GET", "/settings"),
  /** Writes one setting down; live ones take effect at once. */
  set: asks("POST", "/settings"),
  /** Reads the settings files anew. */
  reload: asks("POST", "/settings/reload"),
  /** The end of the log, or with `after` (the `mark` of an earlier answer) the lines since; without secrets. */
  log: asks("GET", "/log"),
};

export const snapshots = {
  /** The machines, the snapshots, the newest first, their `schedule`, and the `work` that is under way. Asks no machine. */
  overview: asks("GET", "/neighborhood"),
  /** The machines: paired ones, found ones, and those that `peers.json` names. Asks none. */
  members: asks("GET", "/neighborhood/members"),
  /** Every snapshot that was taken here, the newest first, and their `schedule`. */
  list: asks("GET", "/neighborhood/snapshots"),
  /** The snapshot, drill or restore that is under way, and how far it is; else null. */
  work: asks("GET", "/neighborhood/work"),
  /** The variables with tokens that `peers.json` sends to a host for these `machines`, and that nobody allowed yet. */
  unaskedTokens: asks("POST", "/neighborhood/unasked_tokens"),
  /** Asks these `machines`, every one without any, whether a snapshot can read it now, and which twins live there. */
  probe: asks("POST", "/neighborhood/probe"),
  /** The differences between two snapshots, `before` and `after`, each by its name or path. */
  diff: asks("POST", "/neighborhood/diff"),
  /** Takes a snapshot of all machines, called `name`, and drills it. `options` as in its manifest. */
  take: follows("/neighborhood/snapshot"),
  /** Hatches a `snapshot` (name or path) into a scratch folder and compares every file. Events as of a snapshot. */
  drill: follows("/neighborhood/drill"),
  /** The plan for bringing a `snapshot` (name or path) back with these `options`; writes nothing anywhere. */
  plan: asks("POST", "/neighborhood/plan"),
  /** Brings a `snapshot` back, here and on the other machines. Events as of a snapshot. */
  restore: follows("/neighborhood/restore"),
  /** Cancels the snapshot that was begun with the id `work`, and answers once it has ended. */
  cancel: asks("POST", "/neighborhood/cancel"),
};

export const sources = {
  /** The connected sources and what each offers. */
  list: asks("GET", "/repos"),
  /** Connects owner/repo, a GitHub address, or a folder or clone on this machine. */
  connect: asks("POST", "/repos/connect"),
  /** Forgets a source; its agents go out of service. */
  disconnect: asks("POST", "/repos/disconnect"),
  /** Puts one agent of a source into service, or out of it; the sha256 of what was fetched is kept. */
  toggle: asks("POST", "/repos/toggle"),
};

export const threads = {
  /** The latest records. */
  activity: asks("GET", "/activity"),
  /** Conversations, the latest first. */
  list: asks("GET", "/threads"),
  /** Shows the records of a conversation. */
  show: asks("GET", "/threads/{thread}"),
  /** The pictures that went with the sentence of a turn, as they were sent. */
  pictures: asks("GET", "/threads/{thread}/pictures/{turn}"),
  /** A conversation as it was said, the last part; `?before=` the `before` of the answer before it. */
  turns: asks("GET", "/threads/{thread}/turns"),
  /** One conversation as JSONL or Markdown. */
  export: saves("/threads/{thread}/export"),
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
  /** Shows a twin, active or archived, with its soul and files, and the `model` of its own where it has one. */
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

export const workflows = {
  /** Lists workflows, and the runs that are not over. */
  list: asks("GET", "/workflows"),
  /** Pauses, resumes or aborts the run of a `session`; without one, of the session used last. */
  control: asks("POST", "/workflows/{action}"),
  /** Shows a workflow with its text. */
  show: asks("GET", "/workflows/{name}"),
  /** Lets a foreign workflow run, exactly as it was read: the `sha256` that it was shown with. */
  approve: asks("POST", "/workflows/{name}/approve"),
  /** Starts a workflow in a `session` (or the one used last); `files` are texts in place of its files, by their names. */
  run: asks("POST", "/workflows/{name}/run"),
};
