import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { metricValue } from '../support/metrics.ts'
import { startMockServer } from '../support/mock-server.ts'
import { rawConnect } from '../support/raw-http.ts'
import { routing } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

// Resources occupied by one client are bounded, and so is their total.

const answering = [{ policies: { directResponse: { status: 200, body: 'served' } } }]

/** A connection from an address of this machine. */
async function connectFrom(localAddress: string, port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  endAfter('test', () => {
    socket.destroy()
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** The answer to one request on a connection that stays open; empty if the connection is closed. */
async function ask(socket: Socket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
  const answered = once(socket, 'data').then(String, () => '')
  const closed = once(socket, 'close').then(
    () => '',
    () => '',
  )
  return Promise.race([answered, closed])
}

describe('connections', () => {
  it('of one address above its bound are closed, and others are served', async () => {
    const { port, gateway } = await routing(answering, { config: { limits: { maxConnectionsPerClient: 3 } } })
    const first = await Promise.all([1, 2, 3].map(() => connectFrom('127.0.0.1', port)))
    expect(await Promise.all(first.map(ask))).toEqual(first.map(() => expect.stringContaining('served')))
    expect(await ask(await connectFrom('127.0.0.1', port))).toBe('')
    expect(await ask(await connectFrom('127.0.0.2', port))).toContain('served')
    const text = await gateway.metrics()
    expect(metricValue(text, 'tollgate_admission_in_use', { resource: 'connections' })).toBe(4)
    expect(
      metricValue(text, 'tollgate_admission_refusals_total', { resource: 'connections_per_client' }),
    ).toBe(1)

    const [leaving] = first
    leaving?.end()
    if (leaving) await once(leaving, 'close')
    expect(await ask(await connectFrom('127.0.0.1', port))).toContain('served')
  })

  it('above the bound of all are closed, and the metrics still answer', async () => {
    const { port, gateway } = await routing(answering, { config: { limits: { maxConnections: 2 } } })
    const held = [await connectFrom('127.0.0.1', port), await connectFrom('127.0.0.2', port)]
    for (const socket of held) expect(await ask(socket)).toContain('served')
    expect(await ask(await connectFrom('127.0.0.3', port))).toBe('')
    const text = await gateway.metrics()
    expect(metricValue(text, 'tollgate_admission_refusals_total', { resource: 'connections' })).toBe(1)
  })

  it('of a trusted proxy are bounded by the total only', async () => {
    const { port } = await routing(answering, {
      config: { limits: { maxConnectionsPerClient: 1 } },
      frontendPolicies: { http: { trustedProxies: ['127.0.0.1'] } },
    })
    for (let count = 0; count < 3; count++) {
      expect(await ask(await connectFrom('127.0.0.1', port))).toContain('served')
    }
  })
})

describe('pipelined requests', () => {
  const row = (count: number) =>
    Array.from({ length: count }, (_, index) => `GET /${index} HTTP/1.1\r\nhost: localhost\r\n\r\n`).join('')

  /** An upstream that delays its responses until released. */
  async function slowUpstream() {
    const waiting: (() => void)[] = []
    let most = 0
    let open = 0
    let released = false
    const server = await startMockServer((request, response) => {
      open += 1
      most = Math.max(most, open)
      const answer = () => {
        open -= 1
        response.end(request.path)
      }
      response.on('close', () => {
        if (!response.writableFinished) open -= 1
      })
      if (released || request.path === '/quick') answer()
      else waiting.push(answer)
    })
    return {
      host: `127.0.0.1:${server.port}`,
      open: () => open,
      most: () => most,
      release() {
        released = true
        for (const answer of waiting.splice(0)) answer()
      },
    }
  }

  it('reach an upstream sixteen at a time, and are all answered in order', async () => {
    const upstream = await slowUpstream()
    const { port } = await routing([{ backends: [{ host: upstream.host }] }])
    const client = await rawConnect(port)
    client.send(row(100))
    await until('sixteen requests arrive', () => upstream.open() === 16)
    expect((await call(port, '/quick')).text).toBe('/quick')
    upstream.release()
    await client.receives('/99')
    const bodies = [...client.received().matchAll(/\r\n\r\n(?:\d+\r\n)?\/(\d+)/g)].map(([, index]) =>
      Number(index),
    )
    expect(bodies).toEqual(Array.from({ length: 100 }, (_, index) => index))
    expect(upstream.most()).toBeLessThanOrEqual(17)
  })

  it('in thousands end their connection with its pending requests, and disturb no other', async () => {
    const upstream = await slowUpstream()
    const { port, gateway } = await routing([{ backends: [{ host: upstream.host }] }])
    const client = await rawConnect(port)
    client.send('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(2000))
    await client.closed()
    expect((await call(port, '/quick')).text).toBe('/quick')
    expect(upstream.most()).toBeLessThanOrEqual(17)
    await until('nothing is under way', async () => {
      const text = await gateway.metrics()
      return metricValue(text, 'tollgate_admission_in_use', { resource: 'requests' }) === 0
    })
    await until('the upstream is left alone', () => upstream.open() === 0)
    const text = await gateway.metrics()
    expect(metricValue(text, 'tollgate_admission_refusals_total', { resource: 'requests' })).toBe(1)
  })

  it('of a client that leaves are all cancelled', async () => {
    const upstream = await slowUpstream()
    const { port } = await routing([{ backends: [{ host: upstream.host }] }])
    const client = await rawConnect(port)
    client.send(row(40))
    await until('sixteen requests arrive', () => upstream.open() === 16)
    client.socket.resetAndDestroy()
    await until('the upstream is left alone', () => upstream.open() === 0)
    expect(upstream.most()).toBe(16)
  })
})

describe('unfinished bodies', () => {
  const chat = '{"model":"echo","messages":[{"role":"user","content":"Hello"}]}'
  const maxBufferedBytes = 4_000_000

  async function start() {
    return startGateway({
      config: { limits: { maxBufferedBytes } },
      llm: { models: [{ name: 'echo', provider: 'echo' }] },
    })
  }

  const inUse = async (gateway: Gateway) =>
    metricValue(await gateway.metrics(), 'tollgate_admission_in_use', { resource: 'buffered_bytes' }) ?? 0

  it('on one HTTP/2 connection share a bound, and others are served', async () => {
    const gateway = await start()
    const session = connectHttp2(gateway.url)
    session.on('error', () => {})
    endAfter('test', () => session.destroy())
    const statuses: number[] = []
    for (let count = 0; count < 20; count++) {
      const stream = session.request({ ':method': 'POST', ':path': '/v1/chat/completions' })
      stream.on('error', () => {})
      stream.on('response', (head) => statuses.push(Number(head[':status'])))
      stream.write(Buffer.alloc(200_000, ' '))
    }
    // Half of the bound for one address: ten of the twenty bodies.
    await until('ten are refused', () => statuses.length >= 10)
    expect(new Set(statuses)).toEqual(new Set([503]))
    expect(await inUse(gateway)).toBeLessThanOrEqual(maxBufferedBytes / 2)
    const other = await askFrom('127.0.0.2', gateway.port, chat)
    expect(other).toMatch(/^HTTP\/1\.1 200 /)
    session.destroy()
    await until('the bytes are returned', async () => (await inUse(gateway)) === 0)
    expect(await askFrom('127.0.0.1', gateway.port, chat)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('on many HTTP/1 connections share a bound', async () => {
    const gateway = await start()
    const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n'
    const clients = await Promise.all(Array.from({ length: 4 }, () => rawConnect(gateway.port)))
    for (const client of clients) client.send(Buffer.concat([Buffer.from(head), Buffer.alloc(900_000, ' ')]))
    await until(
      'two are refused',
      () => clients.filter((client) => client.received().includes(' 503 ')).length === 2,
    )
    const refused = clients.find((client) => client.received().includes(' 503 '))
    expect(refused?.received()).toMatch(/retry-after: 1[\s\S]*overloaded/)
    for (const client of clients) client.socket.destroy()
    await until('the bytes are returned', async () => (await inUse(gateway)) === 0)
  })

  it('that are small until they are decoded occupy memory a few at a time', async () => {
    const gateway = await start()
    const large = `{"model":"echo","messages":[{"role":"user","content":"${' '.repeat(9_000_000)}"}]}`
    const body = gzipSync(large)
    expect(body.length).toBeLessThan(20_000)
    const session = connectHttp2(gateway.url)
    session.on('error', () => {})
    endAfter('test', () => session.destroy())
    const statuses: number[] = []
    for (let count = 0; count < 80; count++) {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/v1/chat/completions',
        'content-encoding': 'gzip',
      })
      stream.on('response', (head) => statuses.push(Number(head[':status'])))
      stream.on('error', () => {})
      stream.resume()
      stream.end(body)
    }
    let most = 0
    await until('all are answered', async () => {
      const text = await gateway.metrics()
      most = Math.max(most, metricValue(text, 'tollgate_nodejs_external_memory_bytes') ?? 0)
      return statuses.length === 80
    })
    expect(new Set(statuses)).toEqual(new Set([503]))
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThan(250_000_000)
  })

  /** The answer to a body from an address of this machine. */
  async function askFrom(localAddress: string, port: number, body: string): Promise<string> {
    const socket = await connectFrom(localAddress, port)
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    return once(socket, 'data').then(String)
  }
})

describe('calls to one origin', () => {
  it('beyond its connections and their queue fail at once, and other origins are served', async () => {
    const slow = await startMockServer(() => {})
    const quick = await startMockServer((_, response) => response.end('quick'))
    const { port, gateway } = await routing(
      [
        { matches: [{ path: { exact: '/quick' } }], backends: [{ host: `127.0.0.1:${quick.port}` }] },
        { backends: [{ host: `127.0.0.1:${slow.port}` }] },
      ],
      { config: { limits: { maxUpstreamConnections: 2, maxUpstreamQueue: 1 } } },
    )
    const clients = await Promise.all([1, 2, 3].map(() => connectFrom('127.0.0.1', port)))
    for (const client of clients) client.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await until('three calls are under way', async () => {
      const text = await gateway.metrics()
      return metricValue(text, 'tollgate_admission_in_use', { resource: 'upstream_calls' }) === 3
    })
    await until('two calls arrive', () => slow.seen.length === 2)
    expect((await call(port, '/')).status).toBe(503)
    expect((await call(port, '/quick')).text).toBe('quick')
    for (const client of clients) client.destroy()
    await until('no call is under way', async () => {
      const text = await gateway.metrics()
      return metricValue(text, 'tollgate_admission_in_use', { resource: 'upstream_calls' }) === 0
    })
  })
})

describe('HTTP/2 streams', () => {
  it('of one connection are as many as configured', async () => {
    const { port } = await routing(answering, { config: { limits: { maxConcurrentStreams: 7 } } })
    const { session } = http2Client(port)
    const [settings] = await once(session, 'remoteSettings')
    expect(settings).toMatchObject({ maxConcurrentStreams: 7 })
  })
})
