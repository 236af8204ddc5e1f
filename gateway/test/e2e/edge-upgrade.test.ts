import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Reply } from '../../src/net/http-client/send.ts'
import { endAfter } from '../support/cleanup.ts'
import { type Answer, startEdge, text } from '../support/edge.ts'
import { rawConnect, rawExchange, statusesOf } from '../support/raw-http.ts'
import { until } from '../support/wait.ts'

const head = 'GET /chat HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: echo/1\r\n\r\n'

/** A connected pair: the gateway's side of an upstream connection, and the upstream's. */
async function upstreamPair(): Promise<{ near: Socket; far: Socket }> {
  const far = Promise.withResolvers<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => far.resolve(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const near = await connected(port)
  const pair = { near, far: await far.promise }
  endAfter('test', () => {
    server.close()
    pair.near.destroy()
    pair.far.destroy()
  })
  return pair
}

async function connected(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  return socket
}

function switching(tunnel: Socket, headers = {}): Reply {
  return { status: 101, headers, body: undefined, tunnel }
}

describe('an upgrade', () => {
  it('that is granted joins both sides, and reports the bytes sent to the client', async () => {
    const { near, far } = await upstreamPair()
    const { port, requests, deliveries } = await startEdge(() => switching(near, { 'x-chosen': '1' }))
    const client = await rawConnect(port)
    client.send(`${head}early`)
    const received = await client.receives('\r\n\r\n')
    expect(received).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/)
    expect(received.toLowerCase()).toMatch(
      /x-chosen: 1\r\n[\s\S]*connection: upgrade\r\nupgrade: echo\/1\r\n/,
    )
    expect(requests[0]).toMatchObject({ upgrade: 'echo/1', body: undefined })

    let upstreamHeard = ''
    far.on('data', (chunk) => {
      upstreamHeard += chunk
    })
    client.send(' late')
    await until('the upstream hears it', () => upstreamHeard === 'early late')
    far.write('answer')
    await client.receives('answer')

    // Each direction ends on its own.
    client.socket.end()
    await until('the upstream hears the end', () => far.readableEnded)
    far.end('last words')
    expect(await client.closed()).toMatch(/answerlast words$/)
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]).toMatchObject({ complete: true, status: 101, bytesSent: 16 })
  })

  it('that is not granted is answered in HTTP, and nothing follows', async () => {
    const { port, deliveries } = await startEdge(() => ({ ...text('who are you'), status: 401 }))
    const client = await rawConnect(port)
    client.send(`${head}GET /smuggled HTTP/1.1\r\nhost: h\r\n\r\n`)
    const received = await client.closed()
    expect(statusesOf(received)).toEqual([401])
    expect(received).toMatch(/connection: close[\s\S]*who are you$/i)
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]).toMatchObject({ complete: true, status: 401 })
  })

  it('of a client that leaves before the answer is cancelled', async () => {
    const answer = Promise.withResolvers<Reply>()
    const { port, requests, deliveries } = await startEdge(() => answer.promise)
    const client = await rawConnect(port)
    client.send(head)
    await until('the request arrives', () => requests.length === 1)
    client.socket.end()
    await until('it is cancelled', () => requests[0]?.cancellation.cancelled)
    const { near } = await upstreamPair()
    answer.resolve(switching(near))
    await until('the exchange ends', () => deliveries.length === 1)
    expect(near.destroyed).toBe(true)
    expect(deliveries[0]).toMatchObject({ complete: false, status: undefined })
  })

  it.each([
    ['has a body', 'content-length: 2\r\nupgrade: echo\r\n\r\nhi'],
    ['asks for HTTP/2 alone', 'upgrade: h2c\r\n\r\n'],
    ['comes by HTTP/1.0', 'upgrade: echo\r\n\r\n', '1.0'],
  ])('that %s is answered as if it had not been asked for', async (_, rest, version = '1.1') => {
    const { port, requests } = await startEdge(() => text('plain'))
    const received = await rawExchange(
      port,
      `POST / HTTP/${version}\r\nhost: h\r\nconnection: upgrade\r\n${rest}`,
    )
    expect(statusesOf(received)).toEqual([200])
    expect(requests[0]?.upgrade).toBeUndefined()
  })

  it.each([
    ['together with it', 0],
    ['after it', 60],
  ])(
    'that is not taken up is the last of its connection: a request sent %s is not served',
    async (_, waitMs) => {
      const { port, requests } = await startEdge(async () => {
        await new Promise((resolve) => setTimeout(resolve, 150))
        return text('plain')
      })
      const client = await rawConnect(port)
      const next = 'GET /next HTTP/1.1\r\nhost: h\r\n\r\n'
      const first = 'GET /first HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n'
      client.send(waitMs === 0 ? first + next : first)
      if (waitMs > 0) setTimeout(() => client.send(next), waitMs)
      expect(statusesOf(await client.closed())).toEqual([200])
      expect(requests.map(({ target }) => target)).toEqual(['/first'])
    },
  )

  it('behind a request that is not answered yet waits as an ordinary one', async () => {
    const first = Promise.withResolvers<Reply>()
    const { port, requests } = await startEdge(({ target }) =>
      target === '/first' ? first.promise : text('second'),
    )
    const client = await rawConnect(port)
    client.send(`GET /first HTTP/1.1\r\nhost: h\r\n\r\n${head}`)
    await until('both arrive', () => requests.length === 2)
    first.resolve(text('first'))
    expect(await client.receives('second')).toMatch(/first[\s\S]*second/)
    expect(requests[1]?.upgrade).toBeUndefined()
  })

  it('without the connection option is none', async () => {
    const { port, requests } = await startEdge(() => text('plain'))
    await rawExchange(port, 'GET / HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\n\r\n')
    expect(requests[0]?.upgrade).toBeUndefined()
  })

  it.each([
    ['GET', 'web socket'],
    ['POST', 'websocket'],
  ])('by %s to "%s" is malformed', async (method, protocol) => {
    const { port, requests } = await startEdge(() => text('plain'))
    const received = await rawExchange(
      port,
      `${method} / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: ${protocol}\r\n\r\n`,
    )
    expect(statusesOf(received)).toEqual([400])
    expect(requests).toEqual([])
  })

  it('without an upgrade request breaks the connection', async () => {
    const { near } = await upstreamPair()
    const { port, deliveries } = await startEdge(() => switching(near))
    expect(await rawExchange(port, 'GET / HTTP/1.1\r\nhost: h\r\n\r\n')).toBe('')
    expect(deliveries[0]).toMatchObject({ complete: false })
    expect(near.destroyed).toBe(true)
  })

  it('whose head cannot be written leaves no connection behind', async () => {
    const { near } = await upstreamPair()
    const { port, deliveries } = await startEdge(() => switching(near, { 'x-bad': 'a\r\nb: c' }))
    expect(await rawExchange(port, head)).toBe('')
    await until('the exchange ends', () => deliveries.length === 1)
    expect(near.destroyed).toBe(true)
  })

  it('ends both sides when one breaks', async () => {
    const { near, far } = await upstreamPair()
    const { port, deliveries } = await startEdge(() => switching(near))
    const client = await rawConnect(port)
    client.send(head)
    await client.receives('101')
    far.resetAndDestroy()
    await client.closed()
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]).toMatchObject({ complete: false, status: 101 })
  })

  it("limits the upstream to the client's reading rate", async () => {
    const { near, far } = await upstreamPair()
    const { port } = await startEdge(() => switching(near))
    const client = await rawConnect(port)
    client.send(head)
    await client.receives('101')
    client.socket.pause()
    let sent = 0
    const piece = Buffer.alloc(64 * 1024)
    const pump = setInterval(() => {
      if (far.writableLength < 1024 * 1024 && far.write(piece)) sent += piece.length
    }, 1)
    // The systems' own buffers absorb some megabytes; after that the count stops.
    let before = -1
    await until('the upstream stands still', async () => {
      const isStill = before === sent
      before = sent
      await new Promise((resolve) => setTimeout(resolve, 500))
      return isStill
    })
    clearInterval(pump)
  })

  it('carries WebSocket messages whole', async () => {
    const upstream = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    endAfter('test', () => upstream.close())
    upstream.on('connection', (socket) => socket.on('message', (data) => socket.send(data)))
    const answer: Answer = async ({ headers }) => {
      const address = upstream.address()
      const near = await connected(typeof address === 'object' && address ? address.port : 0)
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      near.write(`GET / HTTP/1.1\r\n${lines.join('')}\r\n`)
      const upstreamHead = await new Promise<string>((resolve) =>
        near.once('data', (chunk) => resolve(String(chunk))),
      )
      near.pause()
      const accept = /sec-websocket-accept: (.*)\r\n/i.exec(upstreamHead)?.[1] ?? ''
      return switching(near, { 'sec-websocket-accept': accept, upgrade: 'websocket' })
    }
    const { port } = await startEdge(answer)
    const client = new WebSocket(`ws://127.0.0.1:${port}/`, { perMessageDeflate: false })
    const message = 'a longer message '.repeat(5000)
    const echoed = new Promise((resolve, reject) => {
      client.on('error', reject)
      client.on('message', (data) => resolve(String(data)))
      client.on('open', () => client.send(message))
    })
    expect(await echoed).toBe(message)
    client.close()
  })
})
