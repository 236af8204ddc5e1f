import type { Clock } from '../../../lib/clock.ts'
import { closeCodes } from '../../../net/websocket/frame.ts'
import type { WebSocketPeer } from '../../../net/websocket/peer.ts'
import type { ConnectionCalls } from '../../../pipeline/exchange.ts'

/** Time limits of a connection. */
export type SessionTimes = {
  /** Longest connection; providers have the same limit. */
  readonly maxSessionMs: number
  /** Longest time without a message. */
  readonly idleMs: number
  /** Interval of pings to both sides; a side without any bytes in two of them is lost. */
  readonly pingMs: number
  /** Interval of the checks of the credential and of these limits. */
  readonly checkMs: number
}

export const defaultTimes: SessionTimes = {
  maxSessionMs: 60 * 60_000,
  idleMs: 15 * 60_000,
  pingMs: 30_000,
  checkMs: 2_000,
}

/** The end of a connection by the gateway. */
export type SessionEnd = { readonly code: number; readonly reason: string }

export type WatchedSession = {
  readonly client: WebSocketPeer
  readonly upstream: WebSocketPeer
  readonly calls: ConnectionCalls
  readonly requestModel: string
  readonly clock: Clock
  end(reason: SessionEnd): void
  /** Ends requests of responses that the provider has not answered in time. */
  endLate(): void
  /** Ends connections without a reader. */
  lose(side: 'client' | 'upstream'): void
}

export type SessionWatch = {
  /** Records a message in either direction. */
  touch(): void
  /** Checks the credential, the route and the model of the key again. Returns the reason of a refusal. */
  check(): Promise<SessionEnd | undefined>
  stop(): void
}

/** Watches the time limits and the credential of a connection. */
export function watchSession(session: WatchedSession, times: SessionTimes): SessionWatch {
  const { clock, calls, requestModel, client, upstream, end } = session
  const startedAt = clock.monotonic()
  let touchedAt = startedAt
  let pingedAt = startedAt
  const silent = { client: 0, upstream: 0 }
  let isChecking = false

  async function check(): Promise<SessionEnd | undefined> {
    const refusal = await calls.recheck(clock.now() >= expiryOf(calls))
    if (refusal !== undefined) return { code: closeCodes.policyViolation, reason: reasonOf(refusal.status) }
    if (calls.current.auth.models?.allows(requestModel) === false)
      return { code: closeCodes.policyViolation, reason: 'the key does not permit the model' }
    if (calls.isOutdated)
      return { code: closeCodes.serviceRestart, reason: 'the configuration has changed: connect again' }
    return undefined
  }

  function countSilence(side: 'client' | 'upstream', peer: WebSocketPeer): void {
    silent[side] = peer.takeActivity() ? 0 : silent[side] + 1
    if (silent[side] > 2) session.lose(side)
    else peer.ping()
  }

  async function tick(): Promise<void> {
    const now = clock.monotonic()
    if (now - startedAt >= times.maxSessionMs)
      return end({ code: closeCodes.goingAway, reason: 'maximum duration of a session reached' })
    if (now - touchedAt >= times.idleMs)
      return end({ code: closeCodes.goingAway, reason: 'no messages for too long' })
    if (now - pingedAt >= times.pingMs) {
      pingedAt = now
      countSilence('client', client)
      countSilence('upstream', upstream)
    }
    const ended = await check()
    if (ended !== undefined) end(ended)
  }

  const timer = setInterval(() => {
    session.endLate()
    if (isChecking) return
    isChecking = true
    tick().then(
      () => {
        isChecking = false
      },
      () => end({ code: closeCodes.policyViolation, reason: 'the credential cannot be checked' }),
    )
  }, times.checkMs)
  timer.unref()

  return {
    touch() {
      touchedAt = clock.monotonic()
    },
    check,
    stop: () => clearInterval(timer),
  }
}

/** The earliest end of the credentials of a connection. */
function expiryOf({ current: { auth, facts } }: ConnectionCalls): number {
  const expiry = facts.jwt?.['exp']
  const tokenEnd = typeof expiry === 'number' ? expiry * 1_000 : undefined
  // A session is longer than the token whose claims it has.
  const identityEnd = auth.session === undefined ? tokenEnd : auth.session.endsAt
  return Math.min(identityEnd ?? Number.POSITIVE_INFINITY, auth.expiresAt ?? Number.POSITIVE_INFINITY)
}

function reasonOf(status: number): string {
  if (status === 401) return 'the credential is not valid any more'
  return status === 404 ? 'the route was removed' : 'the request is not permitted any more'
}
