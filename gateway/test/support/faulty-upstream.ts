import { createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { endAfter, type Lifetime } from './cleanup.ts'
import { freePort } from './free-port.ts'

/** The ways in which an upstream can be broken. */
export type Fault =
  | 'refuses'
  | 'resets'
  | 'closes before the head'
  | 'closes mid body'
  | 'closes mid stream'
  | 'stalls before the head'
  | 'stalls mid stream'
  | 'content-length too large'
  | 'content-length too small'
  | 'garbage instead of HTTP'
  | 'garbage JSON'
  | 'HTML with 502'
  | 'huge SSE line'
  | 'slow drip'
  | 'redirects'
  | 'huge headers'
  | 'gzip bomb'
  | 'empty answer'
  | 'JSON of the wrong shape'
  | 'two length headers'
  | 'error event mid stream'

export type FaultyUpstream = {
  port: number
  url: string
  /** Connections that were opened so far. */
  connections(): number
  /** Connections that are open now. */
  open(): number
}

/** A server below HTTP: it answers every request head with exactly the bytes its fault asks for. */
export async function faultyUpstream(fault: Fault, lifetime: Lifetime = 'test'): Promise<FaultyUpstream> {
  const sockets = new Set<Socket>()
  let connections = 0
  if (fault === 'refuses') {
    const port = await freePort()
    return { port, url: `http://127.0.0.1:${port}`, connections: () => 0, open: () => 0 }
  }
  if (fault === 'gzip bomb') gzipBomb()
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    // The other side may reset at any time; that is the subject of the tests.
    socket.on('error', () => {})
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (!isWhole(received)) return
      received = ''
      faults[fault](socket)
    })
  })
  const port = await new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(address !== null && typeof address === 'object' ? address.port : 0)
    })
  })
  endAfter(lifetime, () => {
    for (const socket of sockets) socket.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { port, url: `http://127.0.0.1:${port}`, connections: () => connections, open: () => sockets.size }
}

function isWhole(request: string): boolean {
  const end = request.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(request.slice(0, end))
  return request.length >= end + 4 + Number(length?.[1] ?? 0)
}

let bomb: Buffer | undefined

/** A quarter of a gigabyte of spaces; made once, since making it takes a second. */
function gzipBomb(): Buffer {
  bomb ??= gzipSync(Buffer.alloc(256 * 1024 * 1024, 0x20))
  return bomb
}

const streamHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'

function event(content: string): string {
  const chunk = {
    id: 'chatcmpl-faulty',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'faulty',
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
  }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

function chunked(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

function answer(status: string, headers: Record<string, string | number>, body: string | Buffer): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n`), Buffer.from(body)])
}

const json = { 'content-type': 'application/json' }

const faults: Record<Exclude<Fault, 'refuses'>, (socket: Socket) => void> = {
  resets: (socket) => socket.resetAndDestroy(),
  'closes before the head': (socket) => socket.end(),
  'closes mid body': (socket) =>
    socket.end(answer('200 OK', { ...json, 'content-length': 5000 }, '{"id":"chatcmpl-1","choices":[')),
  'closes mid stream': (socket) => socket.end(streamHead + chunked(event('one')) + chunked(event(' two'))),
  'stalls before the head': () => {},
  'stalls mid stream': (socket) => socket.write(streamHead + chunked(event('one'))),
  'content-length too large': (socket) => {
    const body = JSON.stringify({ id: 'x', choices: [] })
    socket.end(answer('200 OK', { ...json, 'content-length': body.length + 10 }, body))
  },
  'content-length too small': (socket) => {
    const body = JSON.stringify({ id: 'x', choices: [] })
    socket.write(answer('200 OK', { ...json, 'content-length': body.length - 5 }, body))
  },
  'garbage instead of HTTP': (socket) =>
    socket.end('\x16\x03\x01 this is not the protocol you are looking for\r\n\r\n'),
  'garbage JSON': (socket) =>
    socket.write(answer('200 OK', { ...json, 'content-length': 11 }, '{"id": oops')),
  'HTML with 502': (socket) => {
    const body = '<html><head><title>502 Bad Gateway</title></head><body>nginx/internal-host-17</body></html>'
    socket.write(
      answer('502 Bad Gateway', { 'content-type': 'text/html', 'content-length': body.length }, body),
    )
  },
  'huge SSE line': (socket) => {
    socket.write(streamHead)
    const piece = chunked('x'.repeat(64 * 1024))
    let sent = 0
    const pump = () => {
      while (sent < 1024 && !socket.destroyed) {
        sent += 1
        if (!socket.write(sent === 1 ? chunked('data: ') + piece : piece)) {
          socket.once('drain', pump)
          return
        }
      }
      socket.end('0\r\n\r\n')
    }
    pump()
  },
  'slow drip': (socket) => {
    const text = `${streamHead + chunked(event('drip')) + chunked('data: [DONE]\n\n')}0\r\n\r\n`
    let index = 0
    const timer = setInterval(() => {
      if (index >= text.length || socket.destroyed) {
        clearInterval(timer)
        return
      }
      socket.write(text.slice(index, index + 3))
      index += 3
    }, 2)
  },
  redirects: (socket) =>
    socket.write(
      answer(
        '307 Temporary Redirect',
        { location: 'http://169.254.169.254/latest/meta-data', 'content-length': 0 },
        '',
      ),
    ),
  'huge headers': (socket) =>
    socket.write(answer('200 OK', { ...json, 'x-huge': 'h'.repeat(1024 * 1024), 'content-length': 2 }, '{}')),
  'gzip bomb': (socket) => {
    const bomb = gzipBomb()
    socket.write(
      answer('200 OK', { ...json, 'content-encoding': 'gzip', 'content-length': bomb.byteLength }, bomb),
    )
  },
  'empty answer': (socket) => socket.write(answer('200 OK', { ...json, 'content-length': 0 }, '')),
  'JSON of the wrong shape': (socket) =>
    socket.write(answer('200 OK', { ...json, 'content-length': 16 }, '[null, 1, "two"]')),
  'two length headers': (socket) =>
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\n{}xyz'),
  'error event mid stream': (socket) => {
    const failure = {
      error: { message: 'The server had an error', type: 'server_error', param: null, code: null },
    }
    socket.write(
      `${streamHead}${chunked(event('one'))}${chunked(`data: ${JSON.stringify(failure)}\n\n`)}0\r\n\r\n`,
    )
  },
}
