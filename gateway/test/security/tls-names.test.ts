import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { connectTls13 } from '../support/tls13-client.ts'
import { certificateFiles, namedUpstream } from '../support/traffic.ts'

// A TLS connection is judged by the server name its identity was chosen for, and by no name that is sent
// later.

const open = 'www.example.com'
const guarded = 'api.example.com'

let authority: Authority
let gateway: Gateway
let config: (demands: { guarded: boolean }) => GatewayConfig
let running: GatewayConfig
let [http = 0, tcp = 0, single = 0] = [0]

beforeAll(async () => {
  authority = createAuthority()
  ;[http = 0, tcp = 0, single = 0] = await freePorts(3)
  const { cert: root } = certificateFiles(authority, 'file')
  const files = {
    open: certificateFiles(authority.issue(open), 'file'),
    guarded: certificateFiles(authority.issue(guarded), 'file'),
  }
  const upstreams = {
    open: await namedUpstream('open', 'file'),
    guarded: await namedUpstream('guarded', 'file'),
  }
  const listener = (name: 'open' | 'guarded', hostname: string, demands: boolean) => {
    const { cert, key } = files[name]
    return { name, hostname, tls: { cert, key, ...(demands ? { root } : {}) } }
  }
  const saying = (name: 'open' | 'guarded') => ({
    name,
    gateways: `http/${name}`,
    policies: { directResponse: { status: 200, body: name } },
  })
  const saysAll = { gateways: 'single', policies: { directResponse: { status: 200, body: 'single' } } }
  const carrying = (name: 'open' | 'guarded') => ({
    name,
    gateways: `tcp/${name}`,
    backends: [{ host: upstreams[name].host }],
  })
  config = (demands) => {
    const listeners = [listener('open', open, false), listener('guarded', guarded, demands.guarded)]
    return {
      gateways: {
        http: { port: http, listeners },
        single: { port: single, tls: { cert: files.open.cert, key: files.open.key } },
        tcp: { port: tcp, listeners: listeners.map((one) => ({ ...one, protocol: 'TLS' })) },
      },
      routes: [saying('open'), saying('guarded'), saysAll],
      tcpRoutes: [carrying('open'), carrying('guarded')],
    }
  }
  running = config({ guarded: true })
  gateway = await startGateway(running, { lifetime: 'file' })
})

/** Reloads unless the configuration is that one already. */
async function use(demands: { guarded: boolean }): Promise<void> {
  const next = config(demands)
  if (JSON.stringify(next) === JSON.stringify(running)) return
  await gateway.reload(next)
  running = next
}

const requestTo = (host: string) => `GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`

/** The response to a client that names two servers in one handshake, or its refusal. */
async function ask(
  port: number,
  names: { first: string | undefined; second: string | undefined },
  host: string,
): Promise<string> {
  const session = await connectTls13({ port, ...names, alpn: port === http ? ['http/1.1'] : [] })
  if (session.kind === 'refused') return 'refused'
  session.send(requestTo(host))
  const received = await session.closed()
  return received === '' ? 'refused' : received
}

describe('a handshake with a HelloRetryRequest', () => {
  it('is served where both ClientHellos have one server name', async () => {
    const names = { first: open, second: open }
    expect(await ask(http, names, open)).toMatch(/^HTTP\/1\.1 200 [\s\S]*open$/)
    expect(await ask(tcp, names, open)).toMatch(/^HTTP\/1\.1 200 [\s\S]*open/)
  })

  it('asks for the client certificate of the name in both', async () => {
    for (const port of [http, tcp]) {
      const session = await connectTls13({ port, first: guarded, second: guarded })
      expect(session).toMatchObject({ kind: 'open', asksForCertificate: true })
      if (session.kind === 'open') session.send(requestTo(guarded))
      expect(session.kind === 'open' && (await session.closed())).toBe('')
    }
  })

  it.each([
    ['another listener', guarded],
    ['another listener in other letters', guarded.toUpperCase()],
    ['a name with a dot at its end', `${open}.`],
    ['a name no listener has', 'other.example.com'],
  ])('ends the connection where the second names %s', async (_, second) => {
    for (const port of [http, tcp]) {
      for (const host of [open, guarded])
        expect(await ask(port, { first: open, second }, host)).not.toContain('200 OK')
    }
  })

  it('does not take the letters of a name for another name', async () => {
    expect(await ask(http, { first: open, second: open.toUpperCase() }, open)).toContain('200 OK')
  })

  it('keeps the first name where the second has none', async () => {
    const names = { first: open, second: undefined }
    expect(await ask(http, names, guarded)).toContain(' 421 ')
    expect(await ask(tcp, names, guarded)).toMatch(/open$/)
  })

  it('ends the connection where only the second has a server name', async () => {
    expect(await ask(single, { first: undefined, second: undefined }, open)).toContain('200 OK')
    expect(await ask(single, { first: undefined, second: open }, open)).toBe('refused')
  })
})

describe('a TLS session', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'of %s is not resumed for another server name',
    async (maxVersion) => {
      for (const port of [http, tcp]) {
        const first = await handshake(port, { servername: open, maxVersion })
        const session = await first.session
        const second = await handshake(port, { servername: guarded, maxVersion, session }).catch(
          () => undefined,
        )
        second?.socket.write(requestTo(guarded))
        if (second !== undefined) expect(await second.received).toBe('')
        expect(second?.socket.isSessionReused() ?? false).toBe(false)
      }
    },
  )
})

describe('a connection of TLS 1.2', () => {
  it('is not negotiated again, which would bring another ClientHello', async () => {
    const { socket } = await handshake(http, { servername: open, maxVersion: 'TLSv1.2' })
    expect(await exchange(socket, open)).toContain('200 OK')
    const outcome = await new Promise<string>((resolve) => {
      socket.on('error', (error) => resolve(error.message))
      socket.on('close', () => resolve('closed'))
      socket.renegotiate({}, (error) => resolve(error === null ? 'renegotiated' : error.message))
    })
    expect(outcome).not.toBe('renegotiated')
  })
})

describe('a reload that makes a listener ask for client certificates', () => {
  it('applies to connections opened before', async () => {
    await use({ guarded: false })
    const { socket } = await handshake(http, { servername: guarded })
    expect(await exchange(socket, guarded)).toMatch(/^HTTP\/1\.1 200 [\s\S]*guarded$/)
    await use({ guarded: true })
    expect(await exchange(socket, guarded)).toMatch(/^HTTP\/1\.1 421 /)
  })

  it('applies to handshakes begun before', async () => {
    for (const port of [http, tcp]) {
      await use({ guarded: false })
      const session = await connectTls13({
        port,
        first: guarded,
        second: guarded,
        beforeSecond: () => use({ guarded: true }),
      })
      if (session.kind === 'open') session.send(requestTo(guarded))
      expect(session.kind === 'open' ? await session.closed() : '').toBe('')
    }
  })

  it('leaves connections of other listeners alone', async () => {
    await use({ guarded: false })
    const { socket } = await handshake(http, { servername: open })
    await use({ guarded: true })
    expect(await exchange(socket, open)).toMatch(/^HTTP\/1\.1 200 /)
    const shown = { ca: authority.cert, name: guarded, ...authority.issue('client.test') }
    expect((await call(http, '/', { host: guarded, tls: shown })).text).toBe('guarded')
  })
})

type Client = { socket: TLSSocket; session: Promise<Buffer>; received: Promise<string> }

async function handshake(
  port: number,
  options: { servername: string; maxVersion?: 'TLSv1.2' | 'TLSv1.3'; session?: Buffer },
): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', ca: authority.cert, ...options })
  endAfter('test', () => {
    socket.destroy()
  })
  const session = Promise.withResolvers<Buffer>()
  socket.on('session', session.resolve)
  const received = Promise.withResolvers<string>()
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  socket.on('close', () => received.resolve(text))
  await once(socket, 'secureConnect')
  socket.on('error', () => {})
  return { socket, session: session.promise, received: received.promise }
}

/** One request on a connection that stays open. */
async function exchange(socket: TLSSocket, host: string): Promise<string> {
  socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
  const [chunk] = await once(socket, 'data')
  return String(chunk)
}
