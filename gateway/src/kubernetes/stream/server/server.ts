import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { IssuedCertificate } from '../certificates/authority.ts'
import type { ChannelPublisher } from './publisher.ts'
import { createRequestHandler, type RequestOptions } from './requests.ts'
import type { VerifyToken } from './verify-token.ts'

export type StreamServerOptions = {
  readonly publisher: ChannelPublisher
  /** Verifies tokens; called for each request, see `createCachedVerification`. */
  readonly verify: VerifyToken
  /** Name of the service account of the proxies of a Gateway, in the namespace of the Gateway. */
  serviceAccountOf(gateway: string): string
  readonly certificate: IssuedCertificate
  readonly host: string
  readonly port: number
  readonly clock: Clock
  readonly log: Log
  readonly times?: Partial<StreamServerTimes>
}

export type StreamServerTimes = RequestOptions['times'] & {
  /** Longest time without acknowledgement. */
  readonly silentMs: number
  /** Longest time without a byte on a connection; heartbeats of a stream are bytes. */
  readonly idleMs: number
}

export type StreamServer = {
  readonly port: number
  /** Certificate of new connections. */
  useCertificate(certificate: IssuedCertificate): void
  /** Ends the streams; proxies reconnect to another replica. */
  close(): Promise<void>
}

const defaultTimes: StreamServerTimes = {
  heartbeatMs: 10_000,
  stallMs: 60_000,
  verifyEveryMs: 300_000,
  silentMs: 120_000,
  idleMs: 120_000,
}

const maxConnections = 4_000
/** A proxy has one stream and one acknowledgement at a time. */
const maxConcurrentStreams = 8
const handshakeMs = 10_000
/** Time for the last bytes of streams at shutdown. */
const closingMs = 1_000

/**
 * Opens the configuration stream of the controller, HTTP/2 over TLS: `GET /v1/config` and `POST /v1/ack` with
 * the parameters `gateway`, `proxy` and `id`, and a service account token. Rejects if the port cannot be
 * opened.
 */
export async function openStreamServer(options: StreamServerOptions): Promise<StreamServer> {
  const { publisher, certificate, clock } = options
  const times = { ...defaultTimes, ...options.times }
  const requests = createRequestHandler({ ...options, times })
  const sessions = new Set<ServerHttp2Session>()
  const server = createSecureServer({
    ...tlsOf(certificate),
    handshakeTimeout: handshakeMs,
    settings: { maxConcurrentStreams },
  })
  server.maxConnections = maxConnections
  server.on('stream', requests.handle)
  server.on('session', (session) => {
    sessions.add(session)
    // Not gracefully, which would wait for the rest of a request.
    session.setTimeout(times.idleMs, () => session.destroy())
    session.on('error', () => session.destroy())
    session.once('close', () => sessions.delete(session))
  })
  const port = await listen(server, options)
  const silence = setInterval(() => publisher.closeSilent(clock.now() - times.silentMs), times.silentMs / 4)
  return {
    port,
    useCertificate: (next) => server.setSecureContext(tlsOf(next)),
    async close() {
      clearInterval(silence)
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      requests.closeStreams('the controller shuts down')
      for (const session of sessions) session.close()
      const expiry = setTimeout(() => {
        for (const session of sessions) session.destroy()
      }, closingMs)
      await closed
      clearTimeout(expiry)
    },
  }
}

function tlsOf({ chain, key }: IssuedCertificate) {
  return { cert: chain, key, minVersion: 'TLSv1.3' } as const
}

async function listen(
  server: Http2SecureServer,
  { host, port }: Pick<StreamServerOptions, 'host' | 'port'>,
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  // A TCP server has an address while it listens.
  return (server.address() as AddressInfo).port
}
