import { dispatch } from './http-client/dispatch.ts'
import { createPools } from './http-client/pools.ts'
import type { Send } from './send.ts'

export type HttpClientOptions = {
  /** Longest wait for a connection, TLS included. */
  connectTimeoutMs: number
  /** How long an unused connection stays open. */
  keepAliveMs: number
  /** Defaults of the limits a request may set itself. */
  firstByteTimeoutMs: number
  idleTimeoutMs: number
  /** Pools kept at most. 10,000 unless said. */
  maxPools?: number
  /** How long the pool of an origin is kept without use. 10 minutes unless said. */
  unusedPoolMs?: number
}

/** The side of the gateway that calls others. Connections are pooled by origin and settings, and survive reloads. */
export type HttpClient = {
  send: Send
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

const defaultMaxPools = 10_000
const defaultUnusedPoolMs = 600_000

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { connectTimeoutMs, keepAliveMs } = options
  const pools = createPools({
    connectTimeoutMs,
    keepAliveMs,
    maxPools: options.maxPools ?? defaultMaxPools,
    unusedMs: options.unusedPoolMs ?? defaultUnusedPoolMs,
  })
  return {
    send: (request) => dispatch(pools.of(request.origin, connectionOf(request)), request, options),
    close: () => pools.close(),
  }
}

/** Changing the protocol is a matter of HTTP/1.1 (RFC 9110 section 7.8). */
function connectionOf({ connection, upgrade }: Parameters<Send>[0]) {
  if (upgrade === undefined || connection?.version !== '2') return connection
  return { ...connection, key: `${connection.key} upgrade`, version: '1.1' as const }
}
