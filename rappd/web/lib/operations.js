/**
 * The daemon's operations, by noun and verb; docs/routes.md says what each does. Made by docs/make_reference.py from
 * the code.
 */

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

/** The same for one that takes a form with a file in its field `file`. */
const sends = (path) => (given, form) => ask(filled(path, given)[0], { method: "POST", form });

/** The same for one that answers with a file, which is saved under `name`. */
const saves = (path) => (given, name) => download(withQuery(filled(path, given)), name);

export const agents = {
  list: asks("GET", "@/agents"),
  needs: asks("GET", "@/agents/needs/{name}"),
  held: asks("GET", "@/agents/held"),
  source: asks("GET", "@/agents/source/{filename}"),
  save: asks("PUT", "@/agents/source/{filename}"),
  export: saves("@/agents/export/{filename}"),
  generations: asks("GET", "@/agents/generations/{filename}"),
  undo: asks("POST", "@/agents/undo"),
  approve: asks("POST", "@/agents/approve"),
  refuse: asks("POST", "@/agents/refuse"),
  new: asks("POST", "@/agents/new"),
  takeIn: sends("@/agents/import"),
  test: asks("POST", "@/agents/test"),
  run: asks("POST", "@/agents/run"),
  remove: asks("DELETE", "@/agents/{filename}"),
};

export const anchors = {
  show: asks("GET", "/anchors"),
  ask: asks("POST", "/anchors/ask"),
  forget: asks("POST", "/anchors/forget"),
};

export const buddies = {
  status: asks("GET", "/twins/{twin}/buddy"),
  act: asks("POST", "/twins/{twin}/buddy"),
};

export const calls = {
  ask: asks("POST", "/call"),
  cancel: asks("POST", "/call/cancel"),
  broadcast: asks("POST", "/call/broadcast"),
};

export const cartridges = {
  list: asks("GET", "/cartridges"),
  read: asks("GET", "/cartridges/{file}"),
  signer: asks("POST", "/cartridges/signer"),
  sign: takes("/cartridges/signature"),
};

export const checkpoints = {
  make: asks("POST", "/twins/{twin}/checkpoints"),
  list: asks("GET", "/twins/{twin}/checkpoints"),
  rollback: asks("POST", "/twins/{twin}/checkpoints/rollback"),
};

export const conversations = {
  list: asks("GET", "/conversations"),
  search: asks("GET", "/conversations/search"),
  show: asks("GET", "/conversations/{thread}"),
  rename: asks("POST", "/conversations/{thread}/rename"),
  remove: asks("POST", "/conversations/{thread}/remove"),
  restore: asks("POST", "/conversations/{thread}/restore"),
};

export const devices = {
  list: asks("GET", "/devices"),
  window: asks("GET", "/devices/window"),
  openWindow: asks("POST", "/devices/window"),
  qr: asks("GET", "/devices/window/qr"),
  answer: asks("POST", "/devices/window/answer"),
  closeWindow: asks("DELETE", "/devices/window"),
  show: asks("GET", "/devices/{device}"),
  change: asks("POST", "/devices/{device}"),
  sendEgg: asks("POST", "/devices/{device}/eggs"),
  revoke: asks("DELETE", "/devices/{device}"),
};

export const eggs = {
  laid: asks("GET", "/eggs/laid"),
  save: saves("/eggs/laid/{folder}/{name}"),
  diff: asks("POST", "/eggs/diff"),
  hatchings: asks("GET", "/eggs/hatchings"),
  signers: asks("GET", "/eggs/signers"),
  trust: asks("POST", "/eggs/signers"),
  revoke: asks("DELETE", "/eggs/signers/{fingerprint}"),
  layDown: takes("/eggs"),
  look: follows("/eggs/look"),
  hatch: follows("/eggs/hatch"),
  cancel: asks("POST", "/eggs/cancel"),
  pack: follows("/eggs/pack"),
  plan: follows("/eggs/plan"),
  hatchText: follows("/eggs/hatch-text"),
  merge: follows("/eggs/merge"),
  rollback: asks("POST", "/eggs/rollback"),
  discard: asks("DELETE", "/eggs/{id}"),
  arrived: asks("GET", "/eggs/arrived"),
  throwAway: asks("DELETE", "/eggs/arrived/{id}"),
  send: asks("POST", "/eggs/send"),
};

export const estate = {
  show: asks("GET", "/estate"),
  add: asks("POST", "/estate"),
  remove: asks("POST", "/estate/remove"),
  rebuild: asks("POST", "/estate/rebuild"),
  pack: asks("POST", "/estate/pack"),
  lay: asks("POST", "/estate/lay"),
};

export const fleet = {
  status: asks("GET", "/fleet"),
  ask: asks("POST", "/fleet"),
  archiveEstate: asks("POST", "/fleet/archive_estate"),
};

export const legacy = {
  show: asks("GET", "/legacy"),
  open: asks("POST", "/legacy"),
  close: asks("DELETE", "/legacy"),
};

export const memories = {
  list: asks("GET", "@/memories"),
  people: asks("GET", "@/memories/people"),
  add: asks("POST", "@/memories"),
  change: asks("PUT", "@/memories/{key}"),
  delete: asks("DELETE", "@/memories/{key}"),
  undo: asks("POST", "@/memories/undo"),
  listOfUser: asks("GET", "@/users/{user}/memories"),
  changeOfUser: asks("PUT", "@/users/{user}/memories/{key}"),
  deleteOfUser: asks("DELETE", "@/users/{user}/memories/{key}"),
  undoOfUser: asks("POST", "@/users/{user}/memories/undo"),
};

export const models = {
  list: asks("GET", "/models"),
  pictures: asks("GET", "/models/pictures"),
  set: asks("POST", "/models/set"),
  local: asks("GET", "/models/local"),
  useLocal: asks("POST", "/models/local"),
  servers: asks("GET", "/models/servers"),
  test: asks("POST", "/models/test"),
  use: asks("POST", "/models/use"),
  forTwin: asks("POST", "/twins/{twin}/model"),
  forConversation: asks("POST", "@/chat/model"),
  download: follows("/models/download"),
  downloads: asks("GET", "/models/downloads"),
  cancelDownload: asks("POST", "/models/download/cancel"),
};

export const neighborhoods = {
  list: asks("GET", "/neighborhoods"),
  create: asks("POST", "/neighborhoods"),
  pack: asks("POST", "/neighborhoods/{neighborhood}/pack"),
  join: asks("POST", "/neighborhoods/join"),
  show: asks("GET", "/neighborhoods/{neighborhood}"),
  invite: asks("POST", "/neighborhoods/{neighborhood}/invite"),
  publish: asks("POST", "/neighborhoods/{neighborhood}/publish"),
  leave: asks("POST", "/neighborhoods/{neighborhood}/leave"),
};

export const notices = {
  waiting: asks("GET", "/waiting"),
  list: asks("GET", "/notices"),
  tell: asks("POST", "/notices/tell"),
  dismiss: asks("POST", "/notices/dismiss"),
};

export const operator = {
  status: asks("GET", "/operator/status"),
  key: asks("POST", "/operator/key"),
};

export const organism = {
  listeners: asks("GET", "@/organism/listeners"),
  listener: asks("GET", "@/organism/listeners/{name}"),
  show: asks("GET", "/organism"),
  check: asks("POST", "/organism/check"),
  init: asks("POST", "/organism/init"),
  add: asks("POST", "/organism/entries/{kind}"),
  remove: asks("DELETE", "/organism/entries/{kind}/{name}"),
  reload: asks("POST", "/organism/reload"),
  graph: asks("GET", "/organism/graph"),
  privileged: takes("/organism/privileged"),
};

export const outbox = {
  list: asks("GET", "/outbox"),
  redirect: asks("POST", "/outbox/{id}/redirect"),
  retry: asks("POST", "/outbox/{id}/retry"),
  drop: asks("DELETE", "/outbox/{id}"),
};

export const pairings = {
  begin: asks("POST", "/pairings"),
  show: asks("GET", "/pairings/{attempt}"),
  confirm: asks("POST", "/pairings/{attempt}"),
  stop: asks("DELETE", "/pairings/{attempt}"),
};

export const peers = {
  list: asks("GET", "/peers"),
  add: asks("POST", "/peers"),
  forget: asks("POST", "/peers/forget"),
  show: asks("GET", "/peers/{peer}"),
  rename: asks("POST", "/peers/{peer}/rename"),
  note: asks("POST", "/peers/{peer}/note"),
  scopes: asks("POST", "/peers/{peer}/scopes"),
  offer: asks("POST", "/peers/{peer}/offer"),
  revoke: asks("POST", "/peers/{peer}/revoke"),
  hello: asks("POST", "/peers/hello"),
};

export const programs = {
  list: asks("GET", "/programs"),
  conversations: asks("GET", "/programs/conversations"),
};

export const rapps = {
  list: asks("GET", "/rapps"),
  install: asks("POST", "/rapps/install"),
  uninstall: asks("POST", "/rapps/uninstall"),
};

export const replays = {
  open: asks("POST", "/sessions/eggs"),
  show: asks("GET", "/sessions/eggs/{id}"),
  branch: asks("POST", "/sessions/eggs/{id}/branch"),
};

export const schedule = {
  show: asks("GET", "/neighborhood/schedule"),
  set: asks("PUT", "/neighborhood/schedule"),
  switchOff: asks("DELETE", "/neighborhood/schedule"),
};

export const search = {
  find: asks("GET", "/search"),
};

export const sessions = {
  list: asks("GET", "/sessions"),
  open: asks("POST", "/sessions"),
  reopen: asks("POST", "/sessions/{id}/open"),
  show: asks("GET", "/sessions/{id}"),
  say: asks("POST", "/sessions/{id}/say"),
  participants: asks("GET", "/sessions/{id}/participants"),
  invite: asks("POST", "/sessions/{id}/participants"),
  uninvite: asks("DELETE", "/sessions/{id}/participants/{name}"),
  backend: asks("POST", "/sessions/{id}/backend"),
  clear: asks("POST", "/sessions/{id}/clear"),
  branch: asks("POST", "/sessions/{id}/branch"),
  close: asks("POST", "/sessions/{id}/close"),
};

export const settings = {
  list: asks("GET", "/settings"),
  set: asks("POST", "/settings"),
  reload: asks("POST", "/settings/reload"),
  log: asks("GET", "/log"),
};

export const snapshots = {
  overview: asks("GET", "/neighborhood"),
  members: asks("GET", "/neighborhood/members"),
  list: asks("GET", "/neighborhood/snapshots"),
  work: asks("GET", "/neighborhood/work"),
  variables: asks("GET", "/neighborhood/variables"),
  unaskedTokens: asks("POST", "/neighborhood/unasked_tokens"),
  probe: asks("POST", "/neighborhood/probe"),
  diff: asks("POST", "/neighborhood/diff"),
  take: follows("/neighborhood/snapshot"),
  drill: follows("/neighborhood/drill"),
  plan: asks("POST", "/neighborhood/plan"),
  letGo: asks("DELETE", "/neighborhood/plan/{id}"),
  restore: follows("/neighborhood/restore"),
  cancel: asks("POST", "/neighborhood/cancel"),
};

export const sources = {
  list: asks("GET", "/repos"),
  connect: asks("POST", "/repos/connect"),
  disconnect: asks("POST", "/repos/disconnect"),
  toggle: asks("POST", "/repos/toggle"),
};

export const threads = {
  activity: asks("GET", "/activity"),
  list: asks("GET", "/threads"),
  show: asks("GET", "/threads/{thread}"),
  tree: asks("GET", "/threads/{thread}/tree"),
  pictures: asks("GET", "/threads/{thread}/pictures/{turn}"),
  turns: asks("GET", "/threads/{thread}/turns"),
  export: saves("/threads/{thread}/export"),
};

export const timers = {
  list: asks("GET", "/timers"),
  add: asks("POST", "/timers"),
  cancel: asks("DELETE", "/timers/{timer}"),
  pause: asks("POST", "/timers/{timer}/pause"),
  resume: asks("POST", "/timers/{timer}/resume"),
  move: asks("POST", "/timers/{timer}/move"),
  run: asks("POST", "/timers/{timer}/run"),
};

export const tokens = {
  list: asks("GET", "/tokens"),
  issue: asks("POST", "/tokens"),
  capability: asks("POST", "/tokens/capability"),
  narrow: asks("POST", "/tokens/narrow"),
  revoke: asks("DELETE", "/tokens/{jti}"),
};

export const twins = {
  list: asks("GET", "/twins"),
  show: asks("GET", "/twins/{twin}"),
  new: asks("POST", "/twins"),
  rename: asks("POST", "/twins/{twin}/rename"),
  fork: asks("POST", "/twins/{twin}/fork"),
  boot: asks("POST", "/twins/{twin}/boot"),
  stop: asks("POST", "/twins/{twin}/stop"),
  soul: asks("GET", "/twins/{twin}/soul"),
  editSoul: asks("PUT", "/twins/{twin}/soul"),
  restoreSoul: asks("POST", "/twins/{twin}/soul/restore"),
  lineage: asks("GET", "/twins/lineage"),
  archiveMatching: asks("POST", "/twins/archive"),
  archive: asks("POST", "/twins/{twin}/archive"),
  unarchive: asks("POST", "/twins/{twin}/unarchive"),
  purge: asks("POST", "/twins/{twin}/purge"),
};

export const voice = {
  export: saves("@/voice/export"),
};

export const webhooks = {
  list: asks("GET", "/webhooks"),
  add: asks("POST", "/webhooks"),
  remove: asks("DELETE", "/webhooks/{webhook}"),
};

export const workflows = {
  list: asks("GET", "/workflows"),
  control: asks("POST", "/workflows/{action}"),
  show: asks("GET", "/workflows/{name}"),
  approve: asks("POST", "/workflows/{name}/approve"),
  run: asks("POST", "/workflows/{name}/run"),
};
