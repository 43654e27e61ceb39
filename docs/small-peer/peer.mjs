// A small peer of rappd: it pairs by words, keeps a line open, asks, and does what it is asked once.
// Node 20 or newer, no package. docs/wire.md, "A small peer", describes each step. listener.mjs is optional.
//   node peer.mjs FOLDER pair HOST:PORT [LISTEN]   shows four words; type yes when the other machine shows the same
//   node peer.mjs FOLDER run [LISTEN]              each line typed is a question: how are you? or :Clock {"zone": "UTC"}
// LISTEN is a port of this machine where the other one may open the line, too.
import * as crypto from 'node:crypto'
import * as fs from 'node:fs'
import * as https from 'node:https'
import * as path from 'node:path'
import * as readline from 'node:readline'
import * as tls from 'node:tls'
const UUID4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i
const wait = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000))
const hex = (digits) => Buffer.from(digits, 'hex')
const joined = (...parts) => Buffer.concat(parts.map((part) => Buffer.from(part)))
const parsed = (text) => { try { return JSON.parse(text) } catch { return null } }
const sha256 = (...parts) => crypto.createHash('sha256').update(joined(...parts)).digest()

// ---- What this peer can do. Put your own here.
const agents = {
  Clock: { description: 'Tells the time.', work: () => new Date().toISOString() },
  Note: {
    description: 'Writes a note down.', parameters: { type: 'object', properties: { text: { type: 'string' } } },
    work: async ({ text, seconds = 0 }, me) => {
      fs.appendFileSync(path.join(me.folder, 'notes.txt'), `${text}\n`)
      return wait(seconds).then(() => `noted: ${text}`)
    },
  },
}

// ---- Identity: an Ed25519 key, and a P-256 certificate that it vouches for ("Identity", "Introduction").
const BINDING = hex('0614698390cbb7dcecdad8e8f68993b2d8c79cceb569')
const der = (tag, ...parts) => {
  const body = joined(...parts)
  const [high, low] = [body.length >> 8, body.length & 255]
  const size = high ? [0x82, high, low] : low > 127 ? [0x81, low] : [low]
  return joined([tag, ...size], body)
}
const pem = (key) => key.export({ type: 'pkcs8', format: 'pem' })
const extension = (oid, value, critical = []) => der(0x30, oid, critical, der(4, value))
function certificate(key, publicKey, fingerprint) {
  const pair = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = pair.publicKey.export(SPKI)
  const point = crypto.createHash('sha1').update(spki.subarray(-65)).digest() // RFC 5280 section 4.2.1.2, method 1
  const name = der(0x30, der(0x31, der(0x30, hex('0603550403'), der(0x0c, fingerprint))))
  const ecdsa = der(0x30, hex('06082a8648ce3d040302'))
  const body = der(0x30, hex('a003020102'), der(2, [1], crypto.randomBytes(15)), ecdsa, name,
    der(0x30, der(0x17, '250101000000Z'), der(0x18, '21250101000000Z')), name, spki, der(0xa3, der(0x30,
      extension(hex('0603551d13'), hex('3000'), hex('0101ff')),
      extension(hex('0603551d0e'), der(4, point)), extension(hex('0603551d23'), der(0x30, der(0x80, point))),
      extension(BINDING, joined(publicKey, crypto.sign(null, joined('rappd/tls-key\n', spki), key))))))
  const whole = der(0x30, body, ecdsa, der(3, [0], crypto.sign('sha256', body, pair.privateKey)))
  return { certificate: whole.toString('base64'), tlsKey: pem(pair.privateKey) }
}
export function open(folder) {
  const file = path.join(folder, 'identity.json')
  const raw = (key) => Buffer.from(key.export({ format: 'jwk' }).x, 'base64url')
  if (!fs.existsSync(file)) {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { privateKey: key } = crypto.generateKeyPairSync('ed25519')
    const made = certificate(key, raw(key), sha256(raw(key)).toString('hex'))
    fs.writeFileSync(file, JSON.stringify({ ...made, key: pem(key) }), { mode: 0o600 })
  }
  const kept = JSON.parse(fs.readFileSync(file))
  const key = crypto.createPrivateKey(kept.key)
  const fingerprint = sha256(raw(key)).toString('hex')
  const cert = `-----BEGIN CERTIFICATE-----\n${kept.certificate}\n-----END CERTIFICATE-----\n`
  const peer = path.join(folder, 'peer.json')
  return {
    folder, key, id: `brainstem_${fingerprint.slice(0, 16)}`, tls: { key: kept.tlsKey, cert, minVersion: 'TLSv1.3' },
    journal: new Journal(path.join(folder, 'journal.jsonl')),
    peer: fs.existsSync(peer) ? JSON.parse(fs.readFileSync(peer)) : null,
    trust: (found) => fs.writeFileSync(peer, JSON.stringify(found), { mode: 0o600 }),
    introduction: {
      schema: 'rappd-introduction/1.0', name: path.basename(folder), fingerprint, public_key: raw(key).toString('hex'),
      certificate: kept.certificate, sealing_key: '', sealing_signature: '', port: 0, // no eggs, no listener
    },
  }
}
const SPKI = { type: 'spki', format: 'der' }
const ed25519 = (raw) => crypto.createPublicKey({ key: joined(hex('302a300506032b6570032100'), raw), ...SPKI })
function check(introduction, shown) {
  const [raw, bytes] = [hex(introduction.public_key), Buffer.from(introduction.certificate, 'base64')]
  const x509 = new crypto.X509Certificate(bytes)
  const at = bytes.indexOf(BINDING) + BINDING.length
  const bound = bytes.subarray(at + 2, at + 98)
  const spki = x509.publicKey.export(SPKI)
  const holds = bytes.equals(shown) && sha256(raw).toString('hex') === introduction.fingerprint && !x509.ca
    && x509.subject === `CN=${introduction.fingerprint}` && x509.verify(x509.publicKey)
    && bytes.readUInt16BE(at) === 0x0460 && bound.subarray(0, 32).equals(raw)
    && crypto.verify(null, joined('rappd/tls-key\n', spki), ed25519(raw), bound.subarray(32))
  if (!holds) throw new Error('The other machine is not who it says it is.')
}

// ---- HTTPS: a peer's certificate must be the pinned one before a byte is sent ("TLS").
function request(address, route, { me, pin, body, headers } = {}) {
  const { hostname: host, port } = new URL(`https://${address}`)
  return new Promise((done, failed) => {
    const options = { host: host.replace(/[[\]]/g, ''), port, rejectUnauthorized: false, minVersion: 'TLSv1.3' }
    const socket = tls.connect({ ...options, ...(pin ? me.tls : {}) }, () => { // a stranger gets no certificate of ours
      const shown = socket.getPeerX509Certificate().raw
      if (pin && shown.toString('base64') !== pin) return socket.destroy(new Error('Another key answers there.'))
      const sent = { createConnection: () => socket, host, path: route, headers }
      const asked = https.request(body ? { ...sent, method: 'POST', headers: { 'Content-Type': 'application/json' } } : sent)
      asked.on('upgrade', (_, upgraded, head) => done({ socket: upgraded, head }))
      asked.on('response', async (response) => {
        let text = ''
        for await (const piece of response.setEncoding('utf8')) text += piece
        socket.destroy()
        done({ status: response.statusCode, text, shown })
      })
      asked.on('error', failed).end(body)
    })
    socket.on('error', failed)
  })
}
async function post(address, route, said) {
  const { status, text, shown } = await request(address, route, { body: JSON.stringify(said) })
  if (status !== 200) throw new Error(parsed(text)?.error ?? `It answered ${status}: ${text}`)
  return { answer: parsed(text), shown }
}

// ---- Pairing by words: this peer asks, the other machine answers ("Pairing").
const canonical = (value) => // RFC 8785; JSON.stringify writes texts and numbers as it wants them
  value && typeof value === 'object' && !Array.isArray(value)
    ? `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`
    : Array.isArray(value) ? `[${value.map(canonical).join()}]` : JSON.stringify(value)
async function pair(me, address, typed) {
  const hello = { id: crypto.randomUUID(), from: me.id, to: 'broadcast', verb: 'HELLO', data: { capabilities: [] } }
  const { answer: { data: { introduction: other } }, shown } = await post(address, '/envelopes', hello)
  check(other, shown)
  const [nonce, attempt, own] = [crypto.randomBytes(32), crypto.randomUUID(), me.introduction]
  const step = async (name, more) => (await post(address, '/pairing', { step: name, attempt, ...more })).answer
  const commitment = sha256('rappd/pairing-nonce\n', nonce, own.fingerprint, other.fingerprint).toString('hex')
  const offered = await step('offer', { introduction: own, commitment })
  if (offered.yield) throw new Error('Both asked at once: stop the pairing there, and start here again.')
  if (canonical(offered.introduction) !== canonical(other)) throw new Error('Two machines answer at that address.')
  await step('reveal', { nonce: nonce.toString('hex') })
  const transcript = sha256('rappd/pairing-words\n', canonical(own), canonical(other), nonce, hex(offered.nonce))
  const words = fs.readFileSync(new URL('../wire.md', import.meta.url), 'utf8').match(/```text words\n([^`]*)```/)[1].split(/\s+/)
  console.log([...transcript.subarray(0, 4)].map((at) => words[at]).join('  '))
  const same = await typed
  const verdict = joined('rappd/pairing-verdict\n', transcript, same ? '1' : '0')
  await step('verdict', { same, signature: crypto.sign(null, verdict, me.key).toString('hex') })
  for (let state = 'words', theirs; same && ['asking', 'words', 'waiting'].includes(state); await wait(1)) {
    ({ state, verdict: theirs } = await step('poll'))
    if (theirs?.same && crypto.verify(null, verdict, ed25519(hex(other.public_key)), hex(theirs.signature))) {
      me.trust({ address, prefix: other.fingerprint.slice(0, 16), certificate: other.certificate })
      return 'paired'
    }
  }
  return 'not paired'
}

// ---- Being asked, once: a line in the journal before the work and one after, each on the disk ("Once").
class Journal {
  constructor(file) {
    this.known = new Map()
    for (const line of fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n') : []) {
      if (parsed(line)) this.known.set(...parsed(line)) // else it was cut off in the middle of this line
    }
    this.file = fs.openSync(file, 'a', 0o600)
  }
  write(key, reply) {
    fs.writeSync(this.file, `\n${JSON.stringify([key, reply])}`)
    fs.fsyncSync(this.file)
    return this.known.set(key, reply).get(key)
  }
}
const error = (code, reason, msg) => ({ verb: 'ERROR', data: { code, msg, reason } })
async function perform(me, { agent, args, user_input: sentence }) {
  const response = `Ask one of my agents: ${Object.keys(agents).join(', ')}.`
  if (agent === undefined && sentence) return { verb: 'DONE', data: { result: response, response } }
  if (!Object.hasOwn(agents, agent ?? '')) return error(403, 'refused', 'Not allowed.')
  const work = async () => ({ verb: 'DONE', data: { result: await agents[agent].work(args ?? {}, me) } })
  return work().catch((problem) => error(500, 'agent', problem.message))
}
export async function answer(me, { id, from, verb, data }) {
  if (!UUID4.test(id) || !data || typeof data !== 'object') return error(400, 'malformed', 'That is no envelope.')
  if (!String(from).endsWith(`_${me.peer.prefix}`)) return error(403, 'wrong_sender', "'from' is another machine's.")
  if (verb === 'HELLO') return { verb, data: greeting(me) }
  if (verb === 'DONE' || verb === 'ERROR') return { verb: 'ACK', data: { state: 'unknown' } }
  if (verb !== 'HELP') return error(400, 'unknown_verb', `${verb} is not a verb of this machine.`)
  const key = `${from} ${id.toLowerCase()}`
  const known = me.journal.known.get(key)
  if (known === null && !me.running?.has(key)) return error(500, 'interrupted', 'It may have been done, or not.')
  if (known !== undefined) return known ?? { verb: 'ACK', data: { state: 'started' } }
  me.running = (me.running ?? new Set()).add(key)
  me.journal.write(key, null)
  return me.journal.write(key, await perform(me, data))
}
export const patience = ({ _x_deadline: seconds = 30 }) => new Promise((over) => setTimeout( // that the caller has
  over, 1000 * seconds, { verb: 'ACK', data: { state: 'started' } }).unref())
export const greeting = (me) => ({
  capabilities: Object.keys(agents), verbs: ['HELLO', 'HELP', 'DONE', 'ERROR', 'ACK'], protocol: 'rappd/1',
  name: me.introduction.name, introduction: me.introduction, twins: [],
  agents: Object.entries(agents).map(([name, { description, parameters = {} }]) => ({ name, description, parameters })),
})

// ---- The line: a WebSocket (RFC 6455) of text frames, each an envelope or an array of them ("The line").
export class Line {
  constructor(me, socket, head, asked, masked) {
    Object.assign(this, { me, socket, asked, masked, unread: head })
    socket.on('data', (piece) => { this.unread = joined(this.unread, piece); while (this.read()); })
    this.ended = new Promise((done) => socket.on('close', done).on('error', done))
    socket.setTimeout(35_000, () => socket.destroy()) // the other side pings every 10 s
    this.ask(crypto.randomUUID(), { verb: 'HELLO', data: greeting(me), done: () => {} })
    while (this.read());
  }
  ask(id, { verb, data, done }) {
    this.asked.set(id, { verb, data, done })
    this.write(JSON.stringify({ id, from: this.me.id, to: `brainstem_${this.me.peer.prefix}`, verb, data }))
  }
  write(text, opcode = 1) {
    const body = Buffer.from(text)
    const bytes = hex(body.length.toString(16).padStart(16, '0'))
    const size = body.length < 126 ? [body.length] : body.length < 65536 ? [126, ...bytes.subarray(6)] : [127, ...bytes]
    const mask = this.masked ? crypto.randomBytes(4) : [] // a client's frames are masked, a server's are not
    if (this.masked) size[0] |= 0x80
    this.socket.write(joined([0x80 | opcode, ...size], mask, body.map((byte, n) => byte ^ mask[n & 3])))
  }
  read() {
    const [raw, short] = [this.unread, this.unread[1] & 127]
    const at = short < 126 ? 2 : short === 126 ? 4 : 10
    const mask = raw[1] & 0x80 ? 4 : 0
    if (raw.length < at + mask) return false
    const size = at === 2 ? short : at === 4 ? raw.readUInt16BE(2) : Number(raw.readBigUInt64BE(2))
    if (size > 1 << 20) return void this.socket.destroy()
    if (raw.length < at + mask + size) return false
    const body = raw.subarray(at + mask, at + mask + size).map((byte, n) => byte ^ (mask && raw[at + (n & 3)]))
    this.unread = raw.subarray(at + mask + size)
    const opcode = raw[0] & 15
    if (opcode === 8) return void this.socket.end()
    if (opcode === 9) this.write(body, 10)
    if (opcode < 3) this.hear(body.toString()) // no message comes in several frames
    return true
  }
  hear(text) {
    for (const one of [parsed(text)].flat()) {
      const question = this.asked.get(String(one?.id).toLowerCase())
      if (question && ['HELLO', 'DONE', 'ERROR'].includes(one.verb)) {
        this.asked.delete(one.id.toLowerCase()) // what comes again under that id is no reply any more
        question.done(one)
      } else if (one?.id && !['ACK', 'STREAM'].includes(one.verb) && one.from !== 'unknown') this.reply(one)
    }
  }
  async reply(one) {
    const [from, work] = [one.to === 'broadcast' ? this.me.id : one.to, answer(this.me, one)]
    const tell = (said) => this.write(JSON.stringify({ id: one.id, from, to: one.from, ...said }))
    const first = await Promise.race([work, patience(one)])
    tell(first)
    if (first !== await work) tell(await work)
  }
}

// ---- One line at a time, opened again when it ends; a question goes on each, with its id, until it is answered.
export class Lines {
  constructor(me) { Object.assign(this, { me, asked: new Map(), line: null }) }
  ask(data, id = crypto.randomUUID()) {
    return new Promise((done) => {
      this.asked.set(id, { verb: 'HELP', data, done })
      this.line?.ask(id, this.asked.get(id))
    })
  }
  use(line) {
    this.line = line
    for (const [id, question] of this.asked) if (question.verb === 'HELP') line.ask(id, question)
    return line.ended.then(() => { if (this.line === line) this.line = null })
  }
  async keep() {
    const { peer: { address, certificate: pin } } = this.me
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': 13,
      'Sec-WebSocket-Protocol': 'rappd.2', 'Sec-WebSocket-Key': crypto.randomBytes(16).toString('base64') }
    for (let pause = 1; ; pause = Math.min(2 * pause, 300)) {
      const found = await request(address, '/line', { me: this.me, pin, headers }).catch((problem) => problem)
      if (found.socket) {
        pause = 1
        console.log('the line is open')
        await this.use(new Line(this.me, found.socket, found.head, this.asked, true))
      } else console.error(found.message ?? `It answered ${found.status}: ${found.text}`)
      await wait(pause)
    }
  }
}
async function main([folder, what, ...more]) {
  const [me, input] = [open(folder), readline.createInterface({ input: process.stdin })]
  me.introduction.port = Number(more.at(what === 'pair' ? 1 : 0) ?? 0)
  const typed = new Promise((done) => input.once('line', (line) => done(line === 'yes')))
  if (what === 'pair') return console.log(await pair(me, more[0], typed)) ?? process.exit()
  const lines = new Lines(me)
  input.on('line', async (line) => {
    const [, agent, args] = line.match(/^:(\w+) *(.*)/) ?? []
    const { verb, data } = await lines.ask(agent ? { agent, args: parsed(args) ?? {} } : { user_input: line })
    console.log(`${verb} ${JSON.stringify(data.result ?? data.msg)}`)
  })
  if (me.introduction.port) (await import('./listener.mjs')).listen(me, lines)
  return lines.keep()
}
process.on('unhandledRejection', (problem) => { console.error(problem.message); process.exit(1) })
if (import.meta.url === `file://${process.argv[1]}`) main(process.argv.slice(2))
