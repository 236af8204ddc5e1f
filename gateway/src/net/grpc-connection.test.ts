import { createSecureServer, type SecureServerOptions, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Authority, type Certificate, createAuthority } from '../../test/support/certificates.ts'
import { anywhere } from './egress/egress.ts'
import { createGrpcClient, GrpcError } from './grpc-client.ts'
import type { UpstreamTls } from './http-client/send.ts'

const ends: (() => void)[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const end of ends.splice(0)) end()
})

function callAt(port: number, tls?: UpstreamTls) {
  const grpc = createGrpcClient()
  ends.push(grpc.close)
  const target = { host: '127.0.0.1', port, tls, tlsKey: JSON.stringify(tls ?? ''), egress: anywhere }
  const call = grpc.method(target, '/a.B/C')
  return (deadlineMs = 10_000) =>
    call(Uint8Array.of(1), { deadlineMs }).then(
      (answer) => [...answer],
      (error: unknown) => (error instanceof GrpcError ? error.status : String(error)),
    )
}

type Server = {
  listen(port: number, host: string, done: () => void): void
  close(): void
  address(): unknown
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  return (server.address() as AddressInfo).port
}

describe('calls over TLS', () => {
  let authority: Authority
  let certificate: Certificate
  beforeAll(() => {
    authority = createAuthority()
    certificate = authority.issue('service.test')
  })

  function serve(options: SecureServerOptions = {}) {
    const server = createSecureServer({ ...certificate, ...options })
    server.on('sessionError', () => {})
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(Buffer.from([0, 0, 0, 0, 1, 7]))
    })
    return listen(server)
  }

  it.each([
    ['to the expected name succeed', { serverName: 'service.test' }, [7]],
    ['to another name fail', { serverName: 'other.test' }, 14],
    ['to an accepted name succeed', { serverName: 'a.test', names: ['service.test'] }, [7]],
    ['to no accepted name fail', { serverName: 'service.test', names: ['b.test'] }, 14],
    ['to another name succeed with insecureHost', { serverName: 'a.test', insecure: 'any-name' }, [7]],
  ] as const)('%s', async (_, settings, expected) => {
    const port = await serve()
    expect(await callAt(port, { ca: authority.cert, ...settings })()).toEqual(expected)
  })

  it('to an unknown authority fail, unless insecure', async () => {
    const port = await serve()
    expect(await callAt(port, { serverName: 'service.test' })()).toBe(14)
    expect(await callAt(port, { insecure: 'any' })()).toEqual([7])
  })

  it('present the certificate of the client', async () => {
    const port = await serve({ requestCert: true, rejectUnauthorized: true, ca: authority.cert })
    const settings = { ca: authority.cert, serverName: 'service.test' }
    expect(await callAt(port, { ...settings, ...authority.issue('gateway.test') })()).toEqual([7])
    expect(await callAt(port, settings)()).toBe(14)
  })

  it('fail at a server without HTTP/2', async () => {
    const server = createTlsServer({ ...certificate, ALPNProtocols: ['http/1.1'] }).on(
      'tlsClientError',
      () => {},
    )
    expect(await callAt(await listen(server), { ca: authority.cert, serverName: 'service.test' })()).toBe(14)
  })
})

describe('a connection', () => {
  const settings = Buffer.from('000000040000000000', 'hex')
  const ping = Buffer.from('0000080600000000000000000000000000', 'hex')
  const pingAck = Buffer.from('0000080601000000000000000000000000', 'hex')

  /** A server without responses, except to pings while it is alive. Counts frames at the start of writes. */
  async function silent() {
    const state = { isAlive: true, settingsAcks: 0, pings: 0, pingAcks: 0, closed: 0 }
    const server = createServer((socket: Socket) => {
      socket.write(settings)
      socket.on('close', () => {
        state.closed += 1
      })
      socket.on('error', () => {})
      socket.on('data', ({ 3: type, 4: flags }: Buffer) => {
        if (type === 4 && flags === 1) state.settingsAcks += 1
        if (type === 6 && flags === 1) state.pingAcks += 1
        if (type !== 6 || flags !== 0) return
        state.pings += 1
        // The client answers the ping behind the response, so that its answer shows that it has read both.
        if (state.isAlive) socket.write(Buffer.concat([pingAck, ping]))
      })
    })
    return { port: await listen(server), state }
  }

  it('is probed during a call without a response, and ends without an answer', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    const { port, state } = await silent()
    const result = callAt(port)(600_000)
    const reached = (isReached: () => boolean) => vi.waitUntil(isReached, { timeout: 20_000, interval: 5 })
    await reached(() => state.settingsAcks === 1)
    vi.advanceTimersByTime(11_000)
    await reached(() => state.pingAcks === 1)
    state.isAlive = false
    vi.advanceTimersByTime(11_000)
    await reached(() => state.pings === 2)
    expect(state.closed).toBe(0)
    vi.advanceTimersByTime(6_000)
    await reached(() => state.closed === 1)
    expect(await result).toBe(14)
  })
})
