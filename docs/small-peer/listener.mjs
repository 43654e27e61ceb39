// The listener of a small peer, which it may do without: the other machine opens the line here when it likes.
import * as crypto from 'node:crypto'
import * as https from 'node:https'
import { Line, answer, greeting, patience } from './peer.mjs'

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11' // RFC 6455 section 1.3
const STATUS = { ACK: 202 }

export function listen(me, lines) {
  const server = https.createServer({ ...me.tls, requestCert: true, rejectUnauthorized: false })
  const trusts = (socket) => socket.getPeerX509Certificate()?.raw.toString('base64') === me.peer?.certificate

  server.on('upgrade', (request, socket, head) => {
    if (request.url !== '/line' || !trusts(request.socket)) return socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n')
    const sum = crypto.createHash('sha1').update(request.headers['sec-websocket-key'] + GUID).digest('base64')
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
      + `Sec-WebSocket-Accept: ${sum}\r\nSec-WebSocket-Protocol: rappd.2\r\n\r\n`)
    return lines.use(new Line(me, socket, head, lines.asked, false))
  })

  server.on('request', async (request, response) => {
    const say = (status, said) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(said))
    const route = `${request.method} ${request.url}`
    if (route === 'GET /line') return say(401, { error: 'Only paired machines have a line.', code: 'not_paired' })
    if (route !== 'POST /envelopes') return say(404, { error: 'There is nothing there.', code: 'not_found' })
    let text = ''
    for await (const piece of request.setEncoding('utf8')) {
      text += piece
      if (text.length > 1 << 20) return request.destroy()
    }
    try {
      const { id, from, to, verb, data, _x_deadline } = JSON.parse(text)
      const { agents, twins, ...card } = greeting(me)
      const said = trusts(request.socket) ? await Promise.race([answer(me, { id, from, verb, data }), patience({ _x_deadline })])
        : verb === 'HELLO' ? { verb, data: { ...card, capabilities: [] } }
          : { verb: 'ERROR', data: { code: 401, msg: 'Only paired machines may ask that.', reason: 'not_paired' } }
      const sender = to === 'broadcast' ? me.id : to
      return say(STATUS[said.verb] ?? said.data.code ?? 200, { id, from: sender, to: from, ...said })
    } catch (problem) {
      return say(400, { error: problem.message, code: 'malformed' })
    }
  })

  server.listen(me.introduction.port, () => console.log(`listening at ${me.introduction.port}`))
}
