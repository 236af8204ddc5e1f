import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePort, freePorts } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import {
  echoServer,
  namedServer,
  readToEnd,
  type TcpServer,
  tcpConnect,
  tcpServer,
  tlsConnect,
  tlsServer,
} from '../support/tcp-servers.ts'
import { until, within } from '../support/wait.ts'

let authority: Authority

beforeAll(() => {
  authority = createAuthority()
})

describe('a TCP route', () => {
  it('passes on bytes both ways, one line in the log and figures at the end', async () => {
    const { gateway, port } = await routing([{ name: 'db', backends: [{ host: (await echoServer()).host }] }])
    const client = await tcpConnect(port)
    client.end('twelve bytes')
    expect(await readToEnd(client)).toBe('twelve bytes')
    const [line] = await connections(gateway, 1)
    expect(line).toMatchObject({
      level: 'info',
      route: 'db',
      client: '127.0.0.1',
      bytesReceived: 12,
      bytesSent: 12,
      outcome: 'complete',
      durationMs: expect.any(Number),
    })
    const metrics = await gateway.metrics()
    expect(metrics).toContain('tollgate_tcp_connections_total{route="db",outcome="complete"} 1')
    expect(metrics).toContain('tollgate_tcp_bytes_total{route="db",direction="sent"} 12')
  })

  it('lets a server speak first, and a client that has ended get all that is still to come', async () => {
    const answer = randomBytes(5_000_000)
    const server = await tcpServer((socket) => {
      socket.write('hello')
      socket.resume().on('end', () => socket.end(answer))
    })
    const { port } = await routing([{ backends: [{ host: server.host }] }])
    const client = await tcpConnect(port)
    expect(await take(client, 5)).toBe('hello')
    client.end('bye')
    expect(await readToEnd(client)).toBe(answer.toString('latin1'))
  })

  it('shares connections by weight; weight 0 gets none', async () => {
    const { port } = await routing([
      {
        backends: [
          { host: (await namedServer('three')).host, weight: 3 },
          { host: (await namedServer('one')).host },
          { host: (await namedServer('none')).host, weight: 0 },
        ],
      },
    ])
    const counts: Record<string, number> = { three: 0, one: 0, none: 0 }
    for (let done = 0; done < 400; done++) {
      const name = await greeting(await tcpConnect(port))
      counts[name] = (counts[name] ?? 0) + 1
    }
    expect(counts['none']).toBe(0)
    expect(counts['three']).toBeGreaterThan(230)
    expect(counts['one']).toBeGreaterThan(50)
  })

  it('goes to another backend when one is down, and breaks when all are', async () => {
    const up = await echoServer()
    const down = await freePorts(2)
    const backends = [...down.map((port) => ({ host: `127.0.0.1:${port}`, weight: 50 })), { host: up.host }]
    const { gateway, port } = await routing([{ name: 'db', backends }])
    for (let done = 0; done < 20; done++) {
      const client = await tcpConnect(port)
      client.end('through')
      expect(await readToEnd(client)).toBe('through')
    }
    await up.close()
    await expect(tcpConnect(port).then(readToEnd)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect((await connections(gateway, 21)).at(-1)).toMatchObject({
      attempts: 3,
      outcome: 'unavailable',
      error: { code: 'upstream_connect' },
    })
  })

  it('reaches a named backend', async () => {
    const server = await namedServer('named')
    const { port } = await routing([{ backends: [{ backend: '/db' }] }], {
      backends: [{ name: 'db', host: server.host }],
    })
    expect(await greeting(await tcpConnect(port))).toBe('named')
  })

  it('breaks a client whose backend breaks, so that a partial response does not look complete', async () => {
    const server = await tcpServer((socket) => socket.write('half an answ'))
    const { gateway, port } = await routing([{ backends: [{ host: server.host }] }])
    const client = await tcpConnect(port)
    expect(await take(client, 12)).toBe('half an answ')
    const broken = readToEnd(client)
    server.sockets[0]?.resetAndDestroy()
    await expect(broken).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect((await connections(gateway, 1))[0]).toMatchObject({
      outcome: 'broken',
      error: { code: 'upstream_reset' },
    })
  })
})

describe('many bytes and many connections', () => {
  it('200 MB arrive as they were sent', async () => {
    const received = createHash('sha256')
    const server = await tcpServer((socket) => {
      socket.on('data', (chunk) => received.update(chunk))
      socket.on('end', () => socket.end(received.digest('hex')))
    })
    const { port } = await routing([{ backends: [{ host: server.host }] }])
    const client = await tcpConnect(port)
    const digest = readToEnd(client)
    const sent = createHash('sha256')
    for (let megabyte = 0; megabyte < 200; megabyte++) {
      const block = randomBytes(1_000_000)
      sent.update(block)
      if (!client.write(block)) await once(client, 'drain')
    }
    client.end()
    expect(await within('the transfer ends', digest, 30_000)).toBe(sent.digest('hex'))
  }, 60_000)

  it('a reader that takes nothing slows the sender down, and costs no memory', async () => {
    const server = await tcpServer((socket) => socket.pause())
    const { gateway, port } = await routing([{ backends: [{ host: server.host }] }])
    const client = await tcpConnect(port)
    const before = await residentBytes(gateway)
    const size = 300_000_000
    client.write(Buffer.alloc(size))
    let taken = -1
    await until('nothing moves any more', async () => {
      const last = taken
      taken = size - client.writableLength + client.bytesWritten
      await new Promise((resolve) => setTimeout(resolve, 200))
      return last === taken
    })
    expect((await residentBytes(gateway)) - before).toBeLessThan(100_000_000)
    expect(await metric(gateway, 'tollgate_tcp_bytes_total', 'received')).toBeLessThan(50_000_000)
    const [socket] = server.sockets
    let read = 0
    const all = new Promise<void>((resolve) => {
      socket?.on('data', (chunk: Buffer) => {
        read += chunk.length
        if (read === size) resolve()
      })
    })
    socket?.resume()
    await within('the rest arrives', all, 30_000)
  }, 60_000)

  it('1,000 connections live side by side, each with its own bytes', async () => {
    const server = await echoServer()
    const { gateway, port } = await routing([{ name: 'echo', backends: [{ host: server.host }] }])
    const clients: Socket[] = []
    while (clients.length < 1000) {
      clients.push(...(await Promise.all(Array.from({ length: 100 }, () => tcpConnect(port)))))
    }
    clients.forEach((client, index) => {
      client.write(`I am ${index};`)
    })
    const answers = clients.map((client, index) => take(client, `I am ${index};`.length))
    expect(await Promise.all(answers)).toEqual(clients.map((_, index) => `I am ${index};`))
    expect(await metric(gateway, 'tollgate_tcp_connections_open', 'echo')).toBe(1000)
    for (const client of clients) client.resetAndDestroy()
    await until(
      'all are over',
      async () => (await metric(gateway, 'tollgate_tcp_connections_open', 'echo')) === 0,
    )
    await until('none is left at the backend', () => server.sockets.every(({ destroyed }) => destroyed))
  }, 60_000)
})

describe('TLS', () => {
  it('passes through by server name, untouched', async () => {
    const route = async (name: string, hostnames?: string[]) => ({
      name,
      ...(hostnames === undefined ? {} : { hostnames }),
      backends: [{ host: (await secureServer(name, authority.issue(`${name}.example.com`))).host }],
    })
    const { gateway, port } = await routing(
      [await route('one', ['one.example.com']), await route('wild', ['*.example.com'])],
      {},
      { protocol: 'TLS' },
    )
    const ask = (servername: string) => tlsConnect(port, { ca: authority.cert, servername })
    expect(await greeting(await ask('one.example.com'))).toBe('one')
    expect(await greeting(await ask('ONE.example.com'))).toBe('one')
    expect(await greeting(await ask('wild.example.com'))).toBe('wild')
    await expect(ask('one.example.org')).rejects.toThrow()
    const lines = await connections(gateway, 4)
    expect(lines.map(({ route, serverName }) => `${route}: ${serverName}`).toSorted()).toEqual([
      ': one.example.org',
      'one: one.example.com',
      'one: one.example.com',
      'wild: wild.example.com',
    ])
  })

  it('is expected where it passes through: nothing else gets to a backend', async () => {
    const server = await echoServer()
    const { port } = await routing([{ backends: [{ host: server.host }] }], {}, { protocol: 'TLS' })
    const client = await tcpConnect(port)
    client.write('GET / HTTP/1.1\r\n\r\n')
    expect(await within('the connection is closed', readToEnd(client))).toBe('')
    expect(server.sockets).toEqual([])
  })

  it('ends here, and half-open connections stay possible', async () => {
    const server = await tcpServer((socket) => {
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk.toString()
      })
      socket.on('end', () => setTimeout(() => socket.end(`got ${text}`), 50))
    })
    const files = await certificateFiles(authority.issue('gateway.example.com'))
    const { gateway, port } = await routing(
      [{ name: 'db', backends: [{ host: server.host }] }],
      {},
      { protocol: 'TLS', tls: { cert: files.cert, key: files.key } },
    )
    const client = await tlsConnect(port, { ca: authority.cert, servername: 'gateway.example.com' })
    client.end('in the clear')
    expect(await readToEnd(client)).toBe('got in the clear')
    expect((await connections(gateway, 1))[0]).toMatchObject({
      route: 'db',
      serverName: 'gateway.example.com',
      outcome: 'complete',
    })
  })

  it('ends at the gateway or at the backend, by server name on one port', async () => {
    const inner = await secureServer('passed through', authority.issue('inner.example.com'))
    const plain = await namedServer('terminated')
    const { cert, key } = await certificateFiles(authority.issue('*.example.com'))
    const port = await freePort()
    const listeners = (hostname: string) => [
      { name: 'through', hostname, protocol: 'TLS' },
      { name: 'ends', hostname: '*.example.com', protocol: 'TLS', tls: { cert, key } },
    ]
    const configWith = (hostname: string): GatewayConfig => ({
      gateways: { default: { port, listeners: listeners(hostname) } },
      tcpRoutes: [
        { name: 'inner', gateways: 'default/through', backends: [{ host: inner.host }] },
        { name: 'outer', gateways: 'default/ends', backends: [{ host: plain.host }] },
      ],
    })
    const gateway = await startGateway(configWith('inner.example.com'))
    const greeted = async (servername: string) =>
      greeting(await tlsConnect(port, { ca: authority.cert, servername, rejectUnauthorized: false }))
    expect(await greeted('inner.example.com')).toBe('passed through')
    expect(await greeted('outer.example.com')).toBe('terminated')
    expect(await connections(gateway, 2)).toMatchObject([
      { route: 'inner', serverName: 'inner.example.com' },
      { route: 'outer', serverName: 'outer.example.com' },
    ])
    await expect(greeted('other.test')).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME' })
    await expect(greeted('')).rejects.toThrow()
    await gateway.reload(configWith('outer.example.com'))
    expect(await greeted('inner.example.com')).toBe('terminated')
    expect(await greeted('outer.example.com')).toBe('passed through')
  })

  it('is spoken to a backend whose certificate is right, and only then', async () => {
    const server = await secureServer('secret', authority.issue('db.internal'))
    const files = await certificateFiles(authority)
    const backend = (hostname: string) => ({
      host: server.host,
      policies: { backendTLS: { root: files.cert, hostname } },
    })
    const right = await routing([{ backends: [backend('db.internal')] }])
    expect(await greeting(await tcpConnect(right.port))).toBe('secret')
    const wrong = await routing([{ backends: [backend('other.internal')] }])
    await expect(tcpConnect(wrong.port).then(readToEnd)).rejects.toMatchObject({ code: 'ECONNRESET' })
    expect((await connections(wrong.gateway, 1))[0]).toMatchObject({
      outcome: 'unavailable',
      error: { cause: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' } },
    })
  })
})

describe('a change of the configuration', () => {
  it('keeps open connections of a route that is gone, and of one that leads elsewhere', async () => {
    const [first, second] = [await echoServer(), await namedServer('second')]
    const { gateway, port, configWith } = await routing([{ backends: [{ host: first.host }] }])
    const client = await tcpConnect(port)
    client.write('before')
    expect(await take(client, 6)).toBe('before')
    await gateway.reload(configWith([{ backends: [{ host: second.host }] }]))
    expect(await greeting(await tcpConnect(port))).toBe('second')
    await gateway.reload(configWith([]))
    await expect(tcpConnect(port).then(readToEnd)).rejects.toMatchObject({ code: 'ECONNRESET' })
    client.end('after')
    expect(await readToEnd(client)).toBe('after')
  })

  it('keeps open connections of a gateway that is gone; its port is closed', async () => {
    const { gateway, port, configWith } = await routing([{ backends: [{ host: (await echoServer()).host }] }])
    const client = await tcpConnect(port)
    client.write('before')
    expect(await take(client, 6)).toBe('before')
    const { tcpRoutes: _, gateways: __, ...rest } = configWith([])
    await gateway.reload({ ...rest, gateways: { default: { port: await freePort(), protocol: 'TCP' } } })
    await until('the port is closed', () =>
      tcpConnect(port).then(
        (accepted) => {
          accepted.destroy()
          return false
        },
        () => true,
      ),
    )
    client.end('after')
    expect(await readToEnd(client)).toBe('after')
  })
})

describe('the end of the process', () => {
  it('lets connections finish, within the deadline', async () => {
    const { gateway, port } = await routing([{ backends: [{ host: (await echoServer()).host }] }])
    const client = await tcpConnect(port)
    client.write('before')
    expect(await take(client, 6)).toBe('before')
    gateway.child.kill('SIGTERM')
    await until('new connections are refused', () =>
      tcpConnect(port).then(
        (accepted) => {
          accepted.destroy()
          return false
        },
        () => true,
      ),
    )
    client.end('after')
    expect(await readToEnd(client)).toBe('after')
    await within('the gateway exits after one signal', gateway.exited)
    expect(await gateway.stop()).toEqual({ code: 0, signal: null })
  })

  it('breaks those that go on beyond it, at both ends', async () => {
    const server = await echoServer()
    const { gateway, port } = await routing([{ backends: [{ host: server.host }] }], {
      config: { connectionTerminationDeadline: '300ms' },
    })
    const client = await tcpConnect(port)
    client.write('before')
    expect(await take(client, 6)).toBe('before')
    const atBackend = server.sockets[0]
    const ended = Promise.all([
      readToEnd(client).catch(() => 'broken'),
      // Not `once` of node:events, which takes the reset that comes before it for a failure.
      new Promise((resolve) => atBackend?.once('close', resolve)),
    ])
    await gateway.stop()
    expect((await within('both ends close', ended))[0]).toBe('broken')
  })
})

type Route = Record<string, unknown>

/** A gateway with these TCP routes on its default port. */
async function routing(
  routes: readonly Route[],
  sections: GatewayConfig = {},
  listener: Record<string, unknown> = { protocol: 'TCP' },
) {
  const port = await freePort()
  const configWith = (tcpRoutes: readonly Route[]): GatewayConfig => ({
    ...sections,
    gateways: { default: { port, ...listener } },
    tcpRoutes,
  })
  const gateway = await startGateway(configWith(routes))
  return { gateway, port, configWith }
}

function secureServer(name: string, { cert, key }: { cert: string; key: string }): Promise<TcpServer> {
  return tlsServer({ cert, key }, (socket) => socket.resume().end(name))
}

async function certificateFiles({ cert, key }: { cert: string; key: string }) {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-tls-'))
  endAfter('test', () => rm(folder, { recursive: true }))
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, key)
  return files
}

/** The complete output of a server that sends first and then ends. */
async function greeting(client: Socket): Promise<string> {
  const words = await readToEnd(client)
  client.end()
  return words
}

async function take(client: Socket, bytes: number): Promise<string> {
  for (;;) {
    const chunk: unknown = client.read(bytes)
    if (Buffer.isBuffer(chunk)) return chunk.toString('latin1')
    await within(`${bytes} bytes arrive`, once(client, 'readable'))
  }
}

type Line = Record<string, unknown>

/** The lines of connections that are over, once there are so many. */
function connections(gateway: Gateway, count: number): Promise<Line[]> {
  return until(`${count} connections in the log`, () => {
    const lines = gateway
      .stdout()
      .split('\n')
      .filter((line) => line.includes('"msg":"connection"') && line.endsWith('}'))
      .map((line): Line => JSON.parse(line))
    return lines.length >= count && lines
  })
}

/** The value of the first series of a metric that has the label value. */
async function metric(gateway: Gateway, name: string, label: string): Promise<number> {
  const lines = (await gateway.metrics()).split('\n')
  const line = lines.find((one) => one.startsWith(`${name}{`) && one.includes(`"${label}"`))
  return Number(line?.split(' ').at(-1))
}

async function residentBytes(gateway: Gateway): Promise<number> {
  const lines = (await gateway.metrics()).split('\n')
  return Number(
    lines.find((line) => line.startsWith('tollgate_process_resident_memory_bytes '))?.split(' ')[1],
  )
}
