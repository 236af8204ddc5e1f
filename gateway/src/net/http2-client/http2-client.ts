import { createTurns } from '../../lib/scheduling/turns.ts'
import { createOpenSocket, type SocketTarget } from '../http1-client/open-socket.ts'
import { createOrigin, type Http2Origin } from './origin.ts'

/** Client for HTTP/2 with prior knowledge, or by ALPN with TLS. One connection for each origin. */
export type Http2Client = {
  /** Returns the origin of a target. Targets with equal keys share it. */
  origin(key: string, target: Http2Target): Http2Origin
  /** Closes all connections; their streams end. */
  close(): void
}

export type Http2Target = Omit<SocketTarget, 'timeoutMs' | 'alpn'> & {
  /** Time without received bytes during a stream, after which the connection is probed. */
  readonly keepAliveMs: number
}

const connectMs = 10_000
const settingsMs = 5_000
const probeMs = 5_000
/** Closes connections to targets that are no longer configured. */
const idleMs = 300_000
/** Number of origins above which unused ones are removed. */
const maxUnused = 1_000

export function createHttp2Client(): Http2Client {
  const origins = new Map<string, Http2Origin>()
  const turns = createTurns()

  function removeUnused(): void {
    for (const [key, origin] of origins) if (origin.isUnused()) origins.delete(key)
  }

  return {
    origin(key, target) {
      const known = origins.get(key)
      if (known !== undefined) return known
      if (origins.size >= maxUnused) removeUnused()
      const { keepAliveMs } = target
      const created = createOrigin({
        openSocket: createOpenSocket({ ...target, timeoutMs: connectMs, alpn: ['h2'] }),
        settingsMs,
        connection: { turns, keepAliveMs, probeMs, idleMs },
      })
      origins.set(key, created)
      return created
    },
    close() {
      for (const origin of origins.values()) origin.close()
      origins.clear()
    },
  }
}
