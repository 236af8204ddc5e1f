import { once } from 'node:events'
import { createServer, type Server, Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { type Authority, type Certificate, createAuthority } from '../../../test/support/certificates.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { anywhere } from '../egress/egress.ts'
import type { UpstreamTls } from '../http-client/send.ts'
import { createDialTls, type DialTarget, dial } from './dial.ts'

const servers: Server[] = []
const sockets: Socket[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
  for (const socket of sockets.splice(0)) socket.destroy()
})

describe('dial', () => {
  it('opens a connection that permits half-open', async () => {
    const port = await serving((socket) => {
      socket.resume().on('end', () => setTimeout(() => socket.end('late answer'), 20))
    })
    const socket = await dialled({ port })
    socket.end()
    expect(await readAll(socket)).toBe('late answer')
  })

  it('retains early data for a later reader', async () => {
    const socket = await dialled({ port: await serving((near) => near.end('early')) })
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(await readAll(socket)).toBe('early')
    socket.end()
  })

  it('returns the error of the system for a closed port', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const port = portOf(server)
    server.close()
    await once(server, 'close')
    expect(await refused({ port })).toMatchObject({ code: 'ECONNREFUSED' })
  })

  it.each(['127.0.0.1', 'localhost'])('opens no connection to %s that its policy refuses', async (host) => {
    let connections = 0
    const port = await serving((near) => {
      connections += 1
      near.resume()
    })
    const egress = { key: 'refusing', refuses: () => 'refused by the policy' }
    expect(await refused({ host, port, egress })).toMatchObject({ message: 'refused by the policy' })
    expect(connections).toBe(0)
  })

  it('does not call back after cancellation', async () => {
    const port = await serving((near) => near.resume())
    let called = false
    const giveUp = dial(
      { host: '127.0.0.1', port, tls: undefined, timeoutMs: 5_000, egress: anywhere },
      () => {
        called = true
      },
    )
    giveUp()
    giveUp()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(called).toBe(false)
  })
})

describe('dial with TLS', () => {
  const authority = createAuthority()
  const good = authority.issue('db.internal', '127.0.0.1')

  it('requests and verifies the configured server name', async () => {
    const { port, names } = await tlsServing(good)
    const socket = await dialled({ port, tls: trusting(authority, { serverName: 'db.internal' }) })
    expect(await readAll(socket)).toBe('secret')
    expect(names).toEqual(['db.internal'])
    socket.end()
  })

  it('requests no name, and verifies the address, without a name', async () => {
    const { port, names } = await tlsServing(good)
    const socket = await dialled({ port, tls: trusting(authority) })
    expect(await readAll(socket)).toBe('secret')
    expect(names).toEqual([false])
    socket.end()
  })

  it.each<[string, UpstreamTls]>([
    ['another name', { ca: authority.cert, serverName: 'other.internal' }],
    ['none of the names it may bear', { ca: authority.cert, names: ['a.internal', '10.0.0.1'] }],
    ['an authority nobody trusts', {}],
    ['an authority that is not the configured one', { ca: createAuthority('Others').cert }],
    ['an authority nobody trusts, though any name will do', { insecure: 'any-name' }],
  ])('refuses a certificate of %s', async (_, tls) => {
    const { port } = await tlsServing(good)
    const cause = await refused({ port, tls: createDialTls(tls) })
    expect(cause).toBeInstanceOf(Error)
  })

  it.each<[string, UpstreamTls]>([
    ['one of the names it may bear', { ca: authority.cert, names: ['a.internal', 'db.internal'] }],
    ['another name, where any will do', { ca: authority.cert, serverName: 'other', insecure: 'any-name' }],
    ['anybody, where all are accepted', { serverName: 'other.internal', insecure: 'any' }],
  ])('accepts a certificate of %s', async (_, tls) => {
    const { port } = await tlsServing(good)
    const socket = await dialled({ port, tls: createDialTls(tls) })
    expect(await readAll(socket)).toBe('secret')
    socket.end()
  })

  it('sends its own certificate if configured', async () => {
    const demanding = { requestCert: true, rejectUnauthorized: true, ca: authority.cert }
    const { port } = await tlsServing(good, demanding)
    const own = authority.issue('gateway.internal')
    const socket = await dialled({ port, tls: trusting(authority, own) })
    expect(await readAll(socket)).toBe('secret')
    socket.end()
  })

  it('permits half-open connections', async () => {
    const { port } = await tlsServing(good, { allowHalfOpen: true }, (socket) => {
      socket.resume().on('end', () => setTimeout(() => socket.end('late answer'), 20))
    })
    const socket = await dialled({ port, tls: trusting(authority) })
    socket.end('all I have to say')
    expect(await readAll(socket)).toBe('late answer')
  })

  it('waits for a handshake within its limit only', async () => {
    const port = await serving((near) => near.resume())
    expect(await refused({ port, tls: trusting(authority), timeoutMs: 100 })).toMatchObject({
      message: 'no connection within 100 ms',
    })
  })

  it('fails when the peer closes during the handshake', async () => {
    const port = await serving((near) => near.once('data', () => near.end()))
    expect(await refused({ port, tls: trusting(authority) })).toBeInstanceOf(Error)
  })

  it('fails for a protocol other than TLS', async () => {
    const port = await serving((near) => near.end('220 mail.example.com ESMTP\r\n'))
    expect(await refused({ port, tls: trusting(authority) })).toBeInstanceOf(Error)
  })
})

function trusting({ cert }: Authority, more: UpstreamTls = {}) {
  return createDialTls({ ca: cert, ...more })
}

type Wanted = Partial<DialTarget> & { port: number }

function attempt(wanted: Wanted): Promise<Socket | GatewayError> {
  return new Promise((resolve) => {
    dial({ host: '127.0.0.1', tls: undefined, timeoutMs: 5_000, egress: anywhere, ...wanted }, resolve)
  })
}

async function dialled(wanted: Wanted): Promise<Socket> {
  const result = await attempt(wanted)
  if (!(result instanceof Socket)) throw result
  sockets.push(result)
  return result
}

/** The cause of a failed connection. */
async function refused(wanted: Wanted): Promise<unknown> {
  const result = await attempt(wanted)
  if (!(result instanceof GatewayError)) throw new Error('connected')
  expect(result.code).toBe('upstream_connect')
  return result.cause
}

async function serving(onConnection: (socket: Socket) => void): Promise<number> {
  return listening(
    createServer({ allowHalfOpen: true }, (socket) => {
      keep(socket)
      onConnection(socket)
    }),
  )
}

async function tlsServing(
  { cert, key }: Certificate,
  options: TlsOptions = {},
  onConnection: (socket: TLSSocket) => void = (socket) => socket.resume().end('secret'),
) {
  const names: unknown[] = []
  const server = createTlsServer({ cert, key, ...options }, (socket) => {
    keep(socket)
    names.push(socket.servername)
    onConnection(socket)
  })
  server.on('tlsClientError', () => {})
  return { port: await listening(server), names }
}

function keep(socket: Socket): void {
  sockets.push(socket)
  socket.on('error', () => {})
}

async function listening(server: Server): Promise<number> {
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  return portOf(server)
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function readAll(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) text += String(chunk)
  return text
}
