import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { anywhere } from '../../net/egress/egress.ts'
import { describeConnection } from '../../net/listener/connection.ts'
import { createDialTls } from '../../net/tcp/dial.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { createMetrics } from '../../telemetry/metrics/metrics.ts'
import type { TcpTarget } from './forward.ts'
import { compileTcpRoutes, type TcpAttachment, type TcpPortOptions, type TcpRoute } from './tcp.ts'

const servers: Server[] = []
const sockets: Socket[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
  for (const socket of sockets.splice(0)) socket.destroy()
})

describe('the route of a connection', () => {
  it('is the one with the most specific hostname', async () => {
    const routes = await Promise.all(
      [
        ['all', []],
        ['deep', ['*.a.example.com']],
        ['exact', ['db.example.com', 'other.example.com']],
        ['wide', ['*.example.com']],
      ].map(async ([name, hostnames]) => ({
        name: String(name),
        hostnames: Array.isArray(hostnames) ? hostnames : [],
        targets: [target(await greeter(String(name)), String(name))],
      })),
    )
    const { dial } = await listener(routes)
    expect(await greeting(await dial('db.example.com'))).toBe('exact')
    expect(await greeting(await dial('x.example.com'))).toBe('wide')
    expect(await greeting(await dial('x.y.example.com'))).toBe('wide')
    expect(await greeting(await dial('x.a.example.com'))).toBe('deep')
    expect(await greeting(await dial('example.com'))).toBe('all')
    expect(await greeting(await dial(undefined))).toBe('all')
  })

  it('is the first with the same hostname', async () => {
    const { dial } = await listener([
      { name: 'first', hostnames: [], targets: [target(await greeter('first'))] },
      { name: 'second', hostnames: [], targets: [target(await greeter('second'))] },
    ])
    expect(await greeting(await dial('a.example'))).toBe('first')
  })

  it('is one of the listener for its server name, and of no other', async () => {
    const route = async (name: string, hostnames: string[]) => ({
      name,
      hostnames,
      targets: [target(await greeter(name))],
    })
    const { dial, lines } = await listening([
      { hostname: undefined, routes: [await route('anywhere', []), await route('far', ['a.example.com'])] },
      { hostname: '*.example.com', routes: [await route('near', ['a.example.com', 'b.example.org'])] },
      { hostname: 'db.example.com', routes: [await route('all of it', [])] },
    ])
    expect(await greeting(await dial('a.example.com'))).toBe('near')
    expect(await greeting(await dial('db.example.com'))).toBe('all of it')
    expect(await greeting(await dial('b.example.org'))).toBe('anywhere')
    expect(await greeting(await dial(undefined))).toBe('anywhere')
    lines.length = 0
    await broken(await dial('b.example.com'))
    expect(lines).toMatchObject([{ serverName: 'b.example.com', outcome: 'refused' }])
  })

  it('is undefined without a match: the connection is closed and logged', async () => {
    const { dial, lines, metrics } = await listener([
      { name: 'db', hostnames: ['db.example.com'], targets: [target(await greeter('db'))] },
    ])
    for (const serverName of ['other.example.com', undefined]) await broken(await dial(serverName))
    expect(lines).toMatchObject([
      {
        route: '',
        serverName: 'other.example.com',
        outcome: 'refused',
        refusedBy: 'no route for this connection',
      },
      { route: '', outcome: 'refused', client: '127.0.0.1' },
    ])
    expect(await metrics()).toContain('tollgate_tcp_connections_total{route="",outcome="refused"} 2')
  })
})

describe('a connection', () => {
  it('is forwarded to its end, counted and logged in one line', async () => {
    const { dial, lines, metrics } = await listener([
      { name: 'echo', hostnames: [], targets: [target(await echo(), 'db')] },
    ])
    const client = await dial('a.example')
    client.end('twelve bytes')
    expect(await readAll(client)).toBe('twelve bytes')
    await vi.waitUntil(() => lines.length > 0)
    expect(lines).toEqual([
      {
        route: 'echo',
        client: '127.0.0.1',
        serverName: 'a.example',
        bytesReceived: 12,
        bytesSent: 12,
        backend: 'db',
        durationMs: 0,
        outcome: 'complete',
      },
    ])
    const text = await metrics()
    expect(text).toContain('tollgate_tcp_connections_open{route="echo"} 0')
    expect(text).toContain('tollgate_tcp_connections_total{route="echo",outcome="complete"} 1')
    expect(text).toContain('tollgate_tcp_bytes_total{route="echo",direction="received"} 12')
  })

  it('goes to another backend if the chosen one is unreachable, without loss of data', async () => {
    const targets = [
      target(await closedPort(), 'down'),
      target(await closedPort(), 'down too'),
      target(await echo(), 'up', 0.001),
    ]
    const { dial, lines } = await listener([{ name: 'db', hostnames: [], targets }])
    const client = await dial(undefined)
    client.end('sent before anybody listens')
    expect(await readAll(client)).toBe('sent before anybody listens')
    await vi.waitUntil(() => lines.length > 0)
    expect(lines).toMatchObject([{ backend: 'up', attempts: 3, outcome: 'complete' }])
  })

  it('goes to an ejected backend only if no other remains', async () => {
    const context = contextWithMemory()
    const health = { isEjected: () => true, succeeded: vi.fn(), failed: vi.fn() }
    const ejected = { ...target(await greeter('ejected'), 'ejected', 1_000), health }
    const well = target(await greeter('well'), 'well')
    const both = await listener([{ name: 'db', hostnames: [], targets: [ejected, well] }], undefined, context)
    expect(await greeting(await both.dial(undefined))).toBe('well')
    expect(health.succeeded).not.toHaveBeenCalled()
    const wrong = { ...target(await closedPort(), 'down'), health }
    const left = await listener(
      [{ name: 'db', hostnames: [], targets: [ejected, wrong] }],
      undefined,
      context,
    )
    expect(await greeting(await left.dial(undefined))).toBe('ejected')
    expect(health.succeeded).toHaveBeenCalledOnce()
    const none = await listener([{ name: 'db', hostnames: [], targets: [wrong] }], undefined, context)
    await broken(await none.dial(undefined))
    expect(health.failed).toHaveBeenCalledOnce()
  })

  it('is aborted if no backend is reachable; each was tried once', async () => {
    const targets = [target(await closedPort(), 'one'), target(await closedPort(), 'two')]
    const { dial, lines, metrics } = await listener([{ name: 'db', hostnames: [], targets }])
    await broken(await dial(undefined))
    expect(lines).toMatchObject([
      {
        route: 'db',
        attempts: 2,
        outcome: 'unavailable',
        error: { code: 'upstream_connect', cause: { code: 'ECONNREFUSED' } },
      },
    ])
    expect(await metrics()).toContain('tollgate_tcp_connections_open{route="db"} 0')
  })

  it('is aborted without backends', async () => {
    const { dial, lines } = await listener([{ name: 'db', hostnames: [], targets: [] }])
    await broken(await dial(undefined))
    expect(lines).toMatchObject([{ outcome: 'unavailable', error: { message: 'the route has no backends' } }])
  })

  it('is reset by the share of a backend without servers, although another is reachable', async () => {
    const up = await serving((socket) => socket.end('hello'))
    const rejecting: TcpTarget = { name: '', weight: 3, dial: undefined }
    const context = { ...contextWithMemory(), random: () => 0.5 }
    const { dial, lines } = await listener(
      [{ name: 'db', hostnames: [], targets: [rejecting, target(up)] }],
      undefined,
      context,
    )
    await broken(await dial(undefined))
    expect(lines).toMatchObject([
      { outcome: 'unavailable', error: { message: 'the chosen backend has no server' } },
    ])
  })

  it('waits for a backend up to its limit', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    servers.push(silent)
    await once(silent, 'listening')
    const stuck = {
      ...target(portOf(silent), 'stuck'),
      dial: {
        host: '127.0.0.1',
        port: portOf(silent),
        tls: createDialTls({}),
        timeoutMs: 200,
        egress: anywhere,
      },
    }
    const { dial, lines } = await listener([{ name: 'db', hostnames: [], targets: [stuck] }])
    await broken(await dial(undefined))
    expect(lines).toMatchObject([
      { outcome: 'unavailable', error: { cause: { message: 'no connection within 200 ms' } } },
    ])
  })

  it('that the client closes while a backend is dialed is not forwarded', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    servers.push(silent)
    await once(silent, 'listening')
    const upstream = once(silent, 'connection')
    const stuck = {
      ...target(portOf(silent), 'stuck'),
      dial: {
        host: '127.0.0.1',
        port: portOf(silent),
        tls: createDialTls({}),
        timeoutMs: 60_000,
        egress: anywhere,
      },
    }
    const { dial, lines, accepted } = await listener([{ name: 'db', hostnames: [], targets: [stuck] }])
    await dial(undefined)
    const [atBackend] = (await upstream) as [Socket]
    const closed = once(
      atBackend.resume().on('error', () => {}),
      'close',
    )
    accepted[0]?.destroy()
    await closed
    expect(lines).toMatchObject([
      { outcome: 'broken', error: { message: 'the client left before a backend was reached' } },
    ])
  })

  it('counts towards a limit across reloads', async () => {
    const context = contextWithMemory()
    const targets = [target(await echo(), 'echo')]
    const options = { place: 'default', maxConnections: 2 }
    const before = await listener([{ name: 'db', hostnames: [], targets }], options, context)
    const held = [await before.dial(undefined), await before.dial(undefined)]
    for (const client of held) {
      client.write('.')
      await once(client, 'readable')
    }
    const after = await listener([{ name: 'db', hostnames: [], targets }], options, context)
    await broken(await after.dial(undefined))
    expect(after.lines).toMatchObject([{ outcome: 'refused', refusedBy: 'too many connections' }])
    held[0]?.end()
    await vi.waitUntil(() => after.lines.length === 2)
    const next = await after.dial(undefined)
    next.end('free again')
    expect(await readAll(next)).toBe('free again')
  })

  it('continues across reloads', async () => {
    const context = contextWithMemory()
    const options = { place: 'default' }
    const before = await listener(
      [{ name: 'db', hostnames: [], targets: [target(await echo())] }],
      options,
      context,
    )
    const client = await before.dial(undefined)
    client.write('.')
    await once(client, 'readable')
    compileTcpRoutes([], context, options)
    client.end('still here')
    expect(await readAll(client)).toBe('.still here')
  })
})

function target(port: number, name = 'backend', weight = 1): TcpTarget {
  return {
    name,
    weight,
    dial: { host: '127.0.0.1', port, tls: undefined, timeoutMs: 5_000, egress: anywhere },
  }
}

type TestContext = CompileContext & { lines: object[]; metricsText(): Promise<string> }

function contextWithMemory(): TestContext {
  const metrics = createMetrics()
  const lines: object[] = []
  const fixture = fixtureContext()
  return {
    ...fixture,
    metrics,
    log: { ...fixture.log, info: (fields) => lines.push(fields) },
    lines,
    metricsText: async () => (await metrics.render()).text,
  }
}

/** A route whose targets do not change. */
type FixedRoute = Omit<TcpRoute, 'targets'> & { targets: readonly TcpTarget[] }

/** A port with one listener for all connections. */
function listener(routes: readonly FixedRoute[], options?: TcpPortOptions, context?: TestContext) {
  return listening([{ hostname: undefined, routes }], options, context)
}

/** A port with these listeners; `dial` opens a connection that says it asked for a server name. */
async function listening(
  listeners: readonly (Omit<TcpAttachment, 'routes'> & { routes: readonly FixedRoute[] })[],
  options: TcpPortOptions = { place: 'default' },
  context = contextWithMemory(),
) {
  const attachments = listeners.map(({ hostname, routes }) => ({
    hostname,
    routes: routes.map(({ targets, ...route }) => ({ ...route, targets: () => targets })),
  }))
  const serve = compileTcpRoutes(attachments, context, options)
  const accepted: Socket[] = []
  let serverName: string | undefined
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    accepted.push(socket)
    sockets.push(socket)
    serve({ socket, connection: describeConnection(socket, { serverName, identity: undefined }) })
  }).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return {
    accepted,
    lines: context.lines,
    metrics: context.metricsText,
    async dial(name: string | undefined): Promise<Socket> {
      serverName = name
      const arrived = once(server, 'connection')
      const client = connect({ port: portOf(server), host: '127.0.0.1', allowHalfOpen: true })
      sockets.push(client)
      await arrived
      return client
    },
  }
}

async function serving(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    onConnection(socket)
  }).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return portOf(server)
}

function greeter(words: string): Promise<number> {
  return serving((socket) => socket.resume().end(words))
}

function echo(): Promise<number> {
  return serving((socket) => socket.pipe(socket))
}

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = portOf(server)
  server.close()
  await once(server, 'close')
  return port
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function greeting(client: Socket): Promise<string> {
  const words = await readAll(client)
  client.end()
  return words
}

async function readAll(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

/** Resolves when the connection broke; one that ends properly is an error. */
async function broken(client: Socket): Promise<void> {
  client.resume()
  const error = await new Promise<NodeJS.ErrnoException>((resolve, reject) => {
    client.on('error', resolve)
    client.on('end', () => reject(new Error('ended properly')))
  })
  expect(error.code).toBe('ECONNRESET')
}
