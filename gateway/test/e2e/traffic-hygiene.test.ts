import { createServer, type Socket } from 'node:net'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { call, http2Client } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { rawConnect, rawExchange, statusesOf } from '../support/raw-http.ts'
import { type Routing, routing } from '../support/traffic.ts'

/** The bytes received on each connection to the upstream. */
const wires: string[] = []
let running: Routing
let trusting: Routing

beforeAll(async () => {
  const sockets = new Set<Socket>()
  // The most naive HTTP reader, so that the recorded bytes are those on the wire.
  const server = createServer((socket) => {
    const index = wires.push('') - 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      const wire = wires[index] + String(chunk)
      wires[index] = wire
      if (isComplete(wire)) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok')
    })
  })
  const host = `127.0.0.1:${await listening(server)}`
  endAfter('file', () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const routes = [{ backends: [{ host }] }]
  running = await routing(routes, {}, { lifetime: 'file' })
  const http = { trustedProxies: ['127.0.0.0/8'] }
  trusting = await routing(routes, { frontendPolicies: { http } }, { lifetime: 'file' })
})

beforeEach(() => {
  wires.length = 0
})

function isComplete(wire: string): boolean {
  const [head = '', ...rest] = wire.split('\r\n\r\n')
  if (rest.length === 0) return false
  if (/transfer-encoding/i.test(head)) return wire.endsWith('0\r\n\r\n')
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
  return rest.join('\r\n\r\n').length >= length
}

/** Fields of the one request that the upstream saw, by lower-case name. */
function forwarded(): Record<string, string> {
  expect(wires).toHaveLength(1)
  const [head = ''] = (wires[0] ?? '').split('\r\n\r\n')
  const lines = head.split('\r\n').slice(1)
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
}

describe('the client address', () => {
  const claims = {
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'public.test',
    'x-forwarded-user': 'admin',
    'x-real-ip': '203.0.113.7',
    forwarded: 'for=203.0.113.7;host=public.test;proto=https',
  }

  it('is sent to the upstream by the gateway alone, unless it trusts the proxy', async () => {
    await call(running.port, '/', { headers: claims, host: 'asked.test' })
    const fields = forwarded()
    expect(fields).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'asked.test',
    })
    expect(JSON.stringify(fields)).not.toMatch(/203\.0\.113\.7|public\.test|admin/)
  })

  it('is appended to the statement of a trusted proxy', async () => {
    await call(trusting.port, '/', { headers: claims, host: 'asked.test' })
    const fields = forwarded()
    expect(fields).toMatchObject({
      'x-forwarded-for': '203.0.113.7, 127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'public.test',
      'x-forwarded-user': 'admin',
    })
    expect(fields['forwarded']).toMatch(/^for=203\.0\.113\.7;host=public\.test;proto=https, for=127\.0\.0\.1/)
  })

  it('is sent alike over HTTP/2', async () => {
    await http2Client(running.port).ask('/', { headers: claims, authority: 'asked.test' })
    expect(forwarded()).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'asked.test' })
  })
})

describe('fields of one connection', () => {
  it('are not passed on, nor are those that Connection names', async () => {
    await rawExchange(
      running.port,
      [
        'GET / HTTP/1.1',
        'host: h',
        'connection: keep-alive, X-Private, host, x-forwarded-for, authorization',
        'keep-alive: timeout=5',
        'x-private: secret',
        'authorization: Bearer t',
        'proxy-connection: keep-alive',
        'proxy-authorization: Basic eA==',
        'te: trailers, deflate',
        'trailer: x-t',
        'x-public: yes',
        '\r\n',
      ].join('\r\n'),
    )
    const fields = forwarded()
    for (const name of [
      'keep-alive',
      'x-private',
      'proxy-connection',
      'proxy-authorization',
      'trailer',
      'upgrade',
    ])
      expect(fields[name]).toBeUndefined()
    expect(fields).toMatchObject({ te: 'trailers', 'x-public': 'yes', 'x-forwarded-for': '127.0.0.1' })
    expect(fields['host']).toMatch(/^127\.0\.0\.1:/)
  })
})

const victim = 'GET /smuggled HTTP/1.1\r\nhost: h\r\n\r\n'

describe('requests within requests', () => {
  it.each([
    [
      'both lengths',
      `content-length: ${victim.length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${victim}`,
    ],
    ['two lengths', `content-length: 0\r\ncontent-length: ${victim.length}\r\n\r\n${victim}`],
    ['a list of lengths', `content-length: 0, ${victim.length}\r\n\r\n${victim}`],
    ['a signed length', `content-length: +0\r\n\r\n${victim}`],
    ['a length in hex', `content-length: 0x0\r\n\r\n${victim}`],
    ['a spaced name', `content-length : ${victim.length}\r\n\r\n${victim}`],
    ['a strange coding', `transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${victim}`],
    ['two codings', `transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${victim}`],
    ['a tab before the coding', `transfer-encoding:\tchunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n${victim}`],
    ['a vertical tab before the coding', `transfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n${victim}`],
    ['a folded field', `x: y\r\n transfer-encoding: chunked\r\n\r\n0\r\n\r\n${victim}`],
    ['bare line feeds', `x: y\ntransfer-encoding: chunked\n\n0\r\n\r\n${victim}`],
    ['a bare carriage return', `x: y\rtransfer-encoding: chunked\r\n\r\n0\r\n\r\n${victim}`],
    ['a chunk size beyond bounds', `transfer-encoding: chunked\r\n\r\nfffffffffffffffff0\r\n${victim}`],
    ['a chunk size with a sign', `transfer-encoding: chunked\r\n\r\n-1\r\n${victim}`],
    ['a NUL in a name', `x\0: y\r\n\r\n${victim}`],
  ])('by %s are refused, and the connection ends', async (_, rest) => {
    const connection = await rawConnect(running.port)
    connection.send(`POST /front HTTP/1.1\r\nhost: h\r\n${rest}`)
    const received = await connection.closed(5000)
    expect(wires.join('')).not.toMatch(/^GET \/smuggled/m)
    expect(statusesOf(received).filter((status) => status < 400)).toEqual([])
  })

  it('by an extension of a chunk stay within the body', async () => {
    const body = `5;x="\r\n${victim}`
    const connection = await rawConnect(running.port)
    connection.send(`POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n${body}`)
    await connection.closed(5000)
    expect(wires.join('')).not.toMatch(/^GET \/smuggled/m)
  })

  it('by fields of HTTP/2 that mean something in HTTP/1.1 are refused or left out', async () => {
    for (const headers of [
      { 'transfer-encoding': 'chunked' },
      { connection: 'x-a' },
      { 'content-length': '0' },
      { 'x-a': `b\r\ntransfer-encoding: chunked` },
      { ':path': `/ HTTP/1.1\r\nhost: h\r\n\r\nGET /smuggled` },
    ]) {
      await http2Client(running.port)
        .ask('/', { method: 'POST', headers, body: victim })
        .catch(() => undefined)
    }
    // Forwarded requests have the gateway's framing, and none of those fields.
    for (const wire of wires) {
      const [head = '', ...rest] = wire.split('\r\n\r\n')
      expect(head).toMatch(/^POST \/ HTTP\/1\.1\r\n/)
      expect(head.match(/transfer-encoding|content-length|x-a/gi)).toEqual(['transfer-encoding'])
      expect(rest.join('\r\n\r\n')).toBe(`${victim.length.toString(16)}\r\n${victim}\r\n0\r\n\r\n`)
    }
  })

  it('sent in a row are answered in order, each by itself', async () => {
    const one = (path: string, body = '') =>
      `POST ${path} HTTP/1.1\r\nhost: h\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const received = await rawExchange(
      running.port,
      one('/1', 'a') +
        one('/2', victim) +
        one('/3') +
        'GET /4 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n',
    )
    expect(received.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(4)
    expect(wires.map((wire) => wire.split(' ')[1]).sort()).toEqual(['/1', '/2', '/3', '/4'])
  })
})

describe('answers that mean two things', () => {
  it.each([
    [
      'both lengths',
      'content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nevil',
    ],
    ['two lengths', 'content-length: 4\r\ncontent-length: 5\r\n\r\nbody!'],
    ['a broken chunk size', 'transfer-encoding: chunked\r\n\r\nzz\r\nbody\r\n0\r\n\r\n'],
    ['a line break in a value', 'x-a: b\rset-cookie: evil=1\r\ncontent-length: 4\r\n\r\nbody'],
    ['a status beyond bounds', ''],
  ])('by %s are 502, and the next request has its own answer', async (what, rest) => {
    const status = what === 'a status beyond bounds' ? '99999 Odd\r\n\r\n' : `200 OK\r\n${rest}`
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (chunk) => {
        const bad = String(chunk).startsWith('GET /bad')
        socket.write(bad ? `HTTP/1.1 ${status}` : 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood')
      })
    })
    const host = `127.0.0.1:${await listening(server)}`
    endAfter('test', () => {
      server.close()
    })
    await odd(host)
    const answer = await call(running.port, '/bad').catch(() => undefined)
    if (answer) expect([answer.status, answer.text.includes('evil')]).toEqual([502, false])
    for (let count = 0; count < 3; count++) expect((await call(running.port, '/good')).text).toBe('good')
  })

  async function odd(host: string): Promise<void> {
    const { gateway, port } = running
    await gateway.reload({ gateways: { default: { port } }, routes: [{ backends: [{ host }] }] })
  }
})

describe('heads without bounds', () => {
  it('are 414 and 431 in either version', async () => {
    const { port } = trusting
    expect((await call(port, `/${'a'.repeat(20_000)}`)).status).toBe(414)
    expect((await call(port, '/', { headers: { 'x-a': 'b'.repeat(40_000) } })).status).toBe(431)
    expect((await call(port, `/${'a'.repeat(10_000)}`)).status).toBe(200)
    const { ask } = http2Client(port)
    expect((await ask(`/${'a'.repeat(20_000)}`)).status).toBe(414)
    expect((await ask('/')).status).toBe(200)
    const tooLong = http2Client(port).ask('/', { headers: { 'x-a': 'b'.repeat(40_000) } })
    const refused = await tooLong.catch(() => ({ status: 431 }))
    expect(refused.status).toBe(431)
  })
})
