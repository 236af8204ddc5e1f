import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import type { Federation } from '../federation/federation.ts'
import type { Message } from '../message/message.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'
import type { Admission, LimitScope, Slot, Slots } from './admission.ts'
import { digestOwner, type SessionIds } from './session-id.ts'

/** An active request or stream of a session. */
export type SessionUse = {
  readonly kind: 'request' | 'stream'
  /** Called at the end of the session. */
  end(): void
}

/** The single stream of a session of the HTTP+SSE transport (2024-11-05). */
export type LegacyStream = {
  /** Starts a request with its response on the stream; returns false while the client does not read. */
  start(message: Message, context: CallContext): boolean
  /** Extends the stream by the lifetime of a new token, in milliseconds. */
  extend(lifeMs: number): void
}

/** Owner of a session. */
export type SessionClient = {
  /** Identity with access to the session; empty without authentication. */
  readonly owner: string
  /** Key for session limits: the identity, or the network of the client's address. */
  readonly quotaKey: string
}

/** Properties of a new session. */
export type NewSession = Pick<Session, 'target' | 'federation' | 'client' | 'revision' | 'slot'>

/** A session of one client. */
export type Session = {
  readonly id: string
  readonly target: TargetSession
  /** Targets at the start of the session. */
  readonly federation: Federation
  readonly client: SessionClient
  /** Slot of the session in memory. */
  readonly slot: Slot
  /** Revision from the response to `initialize`. */
  readonly revision: string | undefined
  /** Whether another process can resume the session. */
  readonly sealed: boolean
  /** `Clock.monotonic()` at which a sealed session expires, even with active uses. */
  readonly endsAt: number
  lastUsedAt: number
  /** Set by the first message after `initialize`. */
  confirmed: boolean
  /** Time of the last move to the end of the usage order. */
  reorderedAt: number
  /**
   * Active uses: a session in use does not expire. An array, because frequent additions and deletions of a
   * Set retain dead tables, and with them each request, until the next full garbage collection.
   */
  readonly uses: SessionUse[]
  ended: boolean
  /** Set for sessions of the HTTP+SSE transport. */
  legacy: LegacyStream | undefined
  /** Set during shutdown; called after the last use has ended. */
  onDetached: (() => void) | undefined
}

export type SessionsOptions = {
  clock: Clock
  ids: SessionIds
  /** Whether other processes, or this one after a restart, have the key. */
  sharedKey: boolean
  /** Maximum time without use. */
  ttlMs: number
  /** Slots of sessions in memory. */
  slots: Slots
  /** Maximum number of stored ids of ended sessions. */
  maxEndedIds: number
  /** Interval of the search for expired sessions; without it, only `sweep` searches. */
  sweepEveryMs?: number
}

export type Sessions = {
  readonly size: number
  /** Acquires a slot for a new session, if necessary from an unused session. */
  admit(client: SessionClient): Admission
  /** Starts a session in its slot. */
  begin(opened: NewSession): Session
  /** Starts a session bound to a stream of this process. */
  beginLocal(opened: NewSession): Session
  /**
   * Ends an unused session with programs or streams: of this client, or of any client for the total limit.
   */
  endUnused(scope: LimitScope, client: SessionClient): void
  /** Returns the active session of an id if it belongs to `client`; resumes a session of another process. */
  find(id: string, federation: Federation, client: SessionClient): Session | undefined
  /** Reason for the end of a session of `client`, while stored. */
  endReasonOf(id: string, client: SessionClient): string | undefined
  /** Ends a use of a session. */
  release(session: Session, use: SessionUse): void
  /** Ends a session; `reason` is reported to its client. */
  end(session: Session, reason: string): Promise<void>
  /** Ends expired sessions. */
  sweep(): void
  /** Ends sessions with targets that differ from the configuration. */
  retain(federation: Federation): void
  /**
   * Ends streams immediately, and sessions that cannot be resumed elsewhere after their requests. Resolves at
   * completion.
   */
  stop(): Promise<void>
}

/** Maximum lifetime of a sealed session, and storage time of its id after its end. */
export const sealedLifetimeMs = 24 * 60 * 60 * 1000
/** Time without use after which a new session may replace a session. */
const evictableAfterMs = 60_000
const reorderIntervalMs = 10_000
/** Maximum wait for the first message after `initialize`, for sessions with programs or streams. */
const unconfirmedMs = 30_000
/** Bound on endReasons whose reasons are remembered. */
const maxEndReasons = 1_000
const slotNeeded = 'it was not used, and its place was needed for another session'
const unused = 'it was not used for too long'
const targetsChanged = 'the configuration of its targets has changed'

/** Creates the sessions of one endpoint. */
export function createSessions(options: SessionsOptions): Sessions {
  const { clock, ids, sharedKey, ttlMs, slots, maxEndedIds, sweepEveryMs } = options
  /** Sessions in approximate order of last use. */
  const live = new Map<string, Session>()
  /** Ids of ended sealed sessions, with the end of their lifetime. */
  const ended = new Map<string, number>()
  /** Latest end reasons by fingerprint of the id. */
  const endReasons = new Map<string, { owner: string; reason: string }>()
  /**
   * Sealed sessions created until this time count as ended unless active, because some stored ids were
   * evicted.
   */
  let presumedEndedUntil = 0
  let sweeping: NodeJS.Timeout | undefined

  /** Sweeps periodically while sessions exist. */
  function scheduleSweep(): void {
    if (sweepEveryMs === undefined || sweeping !== undefined) return
    sweeping = setInterval(() => {
      sweep()
      if (live.size > 0 || ended.size > 0) return
      clearInterval(sweeping)
      sweeping = undefined
    }, sweepEveryMs)
    sweeping.unref()
  }

  function sweep(): void {
    const now = clock.monotonic()
    for (const session of live.values()) if (isExpired(session, now)) void end(session, unused)
    const wallClock = clock.now()
    for (const [id, until] of ended) {
      if (until > wallClock) break
      ended.delete(id)
    }
  }

  function add(session: Session): Session {
    live.set(session.id, session)
    scheduleSweep()
    session.target.onTerminated((reason) => void end(session, reason))
    return session
  }

  function touch(session: Session): Session {
    const now = clock.monotonic()
    session.lastUsedAt = now
    session.confirmed = true
    // Moves are rare because they allocate; approximate order is sufficient.
    if (now - session.reorderedAt < reorderIntervalMs || session.ended || !live.has(session.id))
      return session
    session.reorderedAt = now
    live.delete(session.id)
    live.set(session.id, session)
    return session
  }

  async function end(session: Session, reason: string): Promise<void> {
    if (session.ended) return
    session.ended = true
    evict(session)
    recordEndReason(session, reason)
    if (session.sealed) recordEnded(session.id)
    for (const use of [...session.uses]) use.end()
    await session.target.close()
    session.onDetached?.()
  }

  /** Detaches a session at shutdown: another process may resume it if the key is shared. */
  function detach(session: Session): void {
    evict(session)
    const closed = session.sealed && sharedKey ? Promise.resolve() : session.target.close()
    closed.then(session.onDetached)
  }

  function recordEndReason({ id, client }: Session, reason: string): void {
    endReasons.set(ids.fingerprint(id), { owner: client.owner, reason })
    if (endReasons.size <= maxEndReasons) return
    const [oldest] = endReasons.keys()
    if (oldest !== undefined) endReasons.delete(oldest)
  }

  function recordEnded(id: string): void {
    ended.set(ids.fingerprint(id), clock.now() + sealedLifetimeMs)
    if (ended.size <= maxEndedIds) return
    const [oldest] = ended
    if (oldest === undefined) return
    ended.delete(oldest[0])
    presumedEndedUntil = Math.max(presumedEndedUntil, oldest[1] - sealedLifetimeMs)
  }

  function evict(session: Session): void {
    live.delete(session.id)
    session.slot.release()
  }

  function admit(client: SessionClient, purpose: 'begin' | 'resume'): Admission {
    const scope = slots.exhausted(client.quotaKey)
    if (scope !== undefined) freeSlot(scope, client, purpose)
    return slots.admit(client.quotaKey)
  }

  /**
   * Frees the slot of an unused session. For the total limit, and for resumption, a resumable session leaves
   * memory. A new session of a client at its limit ends an older one, so that targets have no more sessions
   * either.
   */
  function freeSlot(scope: LimitScope, client: SessionClient, purpose: 'begin' | 'resume'): void {
    const mayEvict = scope === 'total' || purpose === 'resume'
    for (const session of live.values()) {
      if (session.uses.length > 0 || !countsToward(scope, session, client)) continue
      if (mayEvict && session.sealed) {
        evict(session)
        return
      }
      if (!isEvictable(session)) continue
      void end(session, slotNeeded)
      return
    }
  }

  function isEvictable({ uses, lastUsedAt }: Session): boolean {
    return uses.length === 0 && clock.monotonic() - lastUsedAt >= evictableAfterMs
  }

  function isExpired(session: Session, now: number): boolean {
    if (now >= session.endsAt) return true
    const limitMs = session.confirmed || session.sealed ? ttlMs : Math.min(ttlMs, unconfirmedMs)
    return session.uses.length === 0 && now - session.lastUsedAt >= limitMs
  }

  function resume(id: string, federation: Federation, client: SessionClient): Session | undefined {
    const sealed = ids.unseal(id)
    if (sealed === undefined || sealed.owner !== digestOwner(client.owner)) return undefined
    const age = clock.now() - sealed.createdAt
    if (age >= sealedLifetimeMs || age < -sealedLifetimeMs || sealed.createdAt <= presumedEndedUntil)
      return undefined
    if (ended.has(ids.fingerprint(id))) return undefined
    const target = federation.target.resume(sealed.state)
    if (target === undefined) return undefined
    const admitted = admit(client, 'resume')
    if (admitted.kind === 'refused') return undefined
    const { slot } = admitted
    return add(newSession(id, { target, federation, client, revision: sealed.revision, slot }, age))
  }

  function newSession(id: string, opened: NewSession, sealedAgeMs: number | undefined): Session {
    const now = clock.monotonic()
    return {
      ...opened,
      id,
      sealed: sealedAgeMs !== undefined,
      endsAt: sealedAgeMs === undefined ? Number.POSITIVE_INFINITY : now + sealedLifetimeMs - sealedAgeMs,
      lastUsedAt: now,
      confirmed: false,
      reorderedAt: now,
      uses: [],
      ended: false,
      legacy: undefined,
      onDetached: undefined,
    }
  }

  return {
    get size() {
      return live.size
    },
    admit: (client) => admit(client, 'begin'),
    begin(opened) {
      const { target, client, revision } = opened
      const state = target.state()
      const owner = digestOwner(client.owner)
      const id = state && ids.seal({ createdAt: clock.now(), owner, state, revision })
      return add(newSession(id ?? randomUUID(), opened, id === undefined ? undefined : 0))
    },
    beginLocal: (opened) => add(newSession(randomUUID(), opened, undefined)),
    endUnused(scope, client) {
      for (const session of live.values()) {
        if (session.sealed || !countsToward(scope, session, client) || !isEvictable(session)) continue
        void end(session, slotNeeded)
        return
      }
    },
    find(id, federation, client) {
      const session = live.get(id)
      if (session === undefined) return resume(id, federation, client)
      if (session.client.owner !== client.owner) return undefined
      if (isExpired(session, clock.monotonic())) {
        void end(session, unused)
        return undefined
      }
      if (!isConfigured(session, federation)) {
        void end(session, targetsChanged)
        return undefined
      }
      return touch(session)
    },
    endReasonOf(id, { owner }) {
      const ending = endReasons.get(ids.fingerprint(id))
      return ending?.owner === owner ? ending.reason : undefined
    },
    release(session, use) {
      const index = session.uses.indexOf(use)
      if (index !== -1) session.uses.splice(index, 1)
      touch(session)
      if (session.onDetached && session.uses.length === 0) detach(session)
    },
    end,
    sweep,
    retain(federation) {
      for (const session of live.values())
        if (!isConfigured(session, federation)) void end(session, targetsChanged)
    },
    async stop() {
      const detached = [...live.values()].map((session) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        session.onDetached = resolve
        for (const use of [...session.uses]) if (use.kind === 'stream') use.end()
        if (session.uses.length === 0) detach(session)
        return promise
      })
      await Promise.all(detached)
    },
  }
}

function countsToward(scope: LimitScope, session: Session, { quotaKey: counted }: SessionClient): boolean {
  return scope === 'total' || session.client.quotaKey === counted
}

function isConfigured({ federation }: Session, current: Federation): boolean {
  return federation === current || federation.members.every((member) => current.members.includes(member))
}
