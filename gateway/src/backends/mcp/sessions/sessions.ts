import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import type { Federation } from '../federation/federation.ts'
import type { Message } from '../message/message.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'
import type { Admission, LimitScope, Slot, Slots } from './admission.ts'
import { digestOwner, type SessionIds } from './session-id.ts'

/** A request under way, or a stream that stays open by itself. */
export type SessionUse = {
  readonly kind: 'request' | 'stream'
  /** The session has ended. */
  end(): void
}

/** The only stream of a session of the legacy SSE transport. */
export type LegacyStream = {
  /** Starts a request whose answer goes to the stream; false while the client does not read what it has. */
  start(message: Message, context: CallContext): boolean
  /** The client has shown a token that is good for so long. */
  extend(lifeMs: number): void
}

/** The client that a session belongs to. */
export type SessionClient = {
  /** Identity that may use the session; empty without authentication. */
  readonly owner: string
  /** Key that sessions are counted by: the identity, else the network of the client's address. */
  readonly quotaKey: string
}

/** What a session begins with. */
export type NewSession = Pick<Session, 'target' | 'federation' | 'client' | 'revision' | 'slot'>

/** A session of one client. */
export type Session = {
  readonly id: string
  readonly target: TargetSession
  /** The targets as they were configured when the session began. */
  readonly federation: Federation
  readonly client: SessionClient
  /** Its place among those that may be in memory. */
  readonly slot: Slot
  /** Revision that the targets agreed to in the answer to `initialize`. */
  readonly revision: string | undefined
  /** True where another process can go on with it. */
  readonly sealed: boolean
  /** `Clock.monotonic()` after which a sealed session ends even if it is in use. */
  readonly endsAt: number
  lastUsedAt: number
  /** Set by the first message after its beginning. */
  confirmed: boolean
  /** When it last took its place among the others. */
  reorderedAt: number
  /**
   * What is under way: a session in use does not expire. An array, because a Set that is added to and deleted from all the
   * time leaves a chain of dead tables behind, which keeps every request alive until the next full garbage collection.
   */
  readonly uses: SessionUse[]
  ended: boolean
  /** Set for sessions of the legacy SSE transport. */
  legacy: LegacyStream | undefined
  /** Set once the process is about to end: told when nothing of the session is left here. */
  onDetached: (() => void) | undefined
}

export type SessionsOptions = {
  clock: Clock
  ids: SessionIds
  /** True where other processes, or this one after a restart, have the key. */
  sharedKey: boolean
  /** How long a session may be unused. */
  ttlMs: number
  /** Places of sessions in memory. */
  slots: Slots
  /** Bound on ended sessions that are remembered one by one. */
  maxEndedIds: number
  /** How often unused ones are looked for; left out, only when asked to. */
  sweepEveryMs?: number
}

export type Sessions = {
  readonly size: number
  /** Occupies a place for a session that is about to begin, if need be the place of one that is not used. */
  admit(client: SessionClient): Admission
  /** Begins a session in the place it was admitted to. */
  begin(opened: NewSession): Session
  /** Begins a session that lives as long as a stream of this process. */
  beginLocal(opened: NewSession): Session
  /** Ends a session that is not used and has programs or streams of its own: of this client, or of any for the scope in total. */
  endUnused(scope: LimitScope, client: SessionClient): void
  /** The session of an id, if it lives and belongs to `client`; one that another process began goes on here. */
  find(id: string, federation: Federation, client: SessionClient): Session | undefined
  /** The reason why a session of `client` ended, for as long as it is remembered. */
  endReasonOf(id: string, client: SessionClient): string | undefined
  /** Notes that a use of a session is over. */
  release(session: Session, use: SessionUse): void
  /** Ends a session; `reason` is reported to its client. */
  end(session: Session, reason: string): Promise<void>
  /** Ends what has not been used for too long. */
  sweep(): void
  /** Ends every session whose targets are no longer configured as they were. */
  retain(federation: Federation): void
  /** Ends streams at once, and sessions that cannot go on elsewhere as soon as their requests are answered. Resolves when all are. */
  stop(): Promise<void>
}

/** Longest life of a sealed session, which is also how long an ended one is remembered. */
export const sealedLifetimeMs = 24 * 60 * 60 * 1000
/** A session without a process of its own may be ended for a new one once it has been unused for this long. */
const evictableAfterMs = 60_000
const reorderIntervalMs = 10_000
/** Longest wait for the first message after `initialize`, for sessions with programs or streams of their own. */
const unconfirmedMs = 30_000
/** Bound on endReasons whose reasons are remembered. */
const maxEndReasons = 1_000
const slotNeeded = 'it was not used, and its place was needed for another session'
const unused = 'it was not used for too long'
const targetsChanged = 'the configuration of its targets has changed'

/** The sessions of one endpoint. */
export function createSessions(options: SessionsOptions): Sessions {
  const { clock, ids, sharedKey, ttlMs, slots, maxEndedIds, sweepEveryMs } = options
  /** In the order of last use, about. */
  const live = new Map<string, Session>()
  /** Ids of sealed sessions that ended, with the time their lifetime is over. */
  const ended = new Map<string, number>()
  /** Reasons of the latest endReasons, by the fingerprint of the id. */
  const endReasons = new Map<string, { owner: string; reason: string }>()
  /** Sealed sessions created until then that are not live count as ended, because some of them were forgotten. */
  let presumedEndedUntil = 0
  let sweeping: NodeJS.Timeout | undefined

  /** Looks through the sessions from time to time for as long as there are any. */
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
    // Moved rarely, because moving makes garbage; the order needs no more than that.
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

  /** Lets go of a session because the process ends: another one may go on with it, if it can have the key. */
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
   * Frees the place of a session that is not used. For the total, and for a session that is resumed, one that goes on from its id is
   * put out of memory. A new session of a client at its scope ends an older one, so that targets have no more of them either.
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
