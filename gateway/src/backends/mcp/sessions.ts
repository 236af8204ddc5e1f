import { randomUUID } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { Federation } from './federation.ts'
import { digestOwner, type SessionIds } from './session-id.ts'
import type { CallContext, Message, TargetSession } from './targets/target.ts'

/** A request under way, or a stream that stays open by itself. */
export type Use = {
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

/** A session of one client. */
export type Session = {
  readonly id: string
  readonly target: TargetSession
  /** The targets as they were configured when the session began. */
  readonly federation: Federation
  /** Who opened it. */
  readonly owner: string
  /** True where another process can go on with it. */
  readonly sealed: boolean
  /** `Clock.monotonic()` after which a sealed session ends even if it is in use. */
  readonly endsAt: number
  lastUsedAt: number
  /** When it last took its place among the others. */
  movedAt: number
  /**
   * What is under way: a session in use does not expire. An array, because a Set that is added to and deleted from all the
   * time leaves a chain of dead tables behind, which keeps every request alive until the next full garbage collection.
   */
  readonly uses: Use[]
  ended: boolean
  /** Set for sessions of the legacy SSE transport. */
  legacy: LegacyStream | undefined
  /** Set once the process is about to end: told when nothing of the session is left here. */
  leaving: (() => void) | undefined
}

export type SessionsOptions = {
  clock: Clock
  ids: SessionIds
  /** True where other processes, or this one after a restart, have the key. */
  sharedKey: boolean
  /** How long a session may be unused. */
  ttlMs: number
  /** Bound on sessions in memory. */
  maxSessions: number
  /** Bound on ended sessions that are remembered one by one. */
  maxRemembered: number
  /** How often unused ones are looked for; left out, only when asked to. */
  sweepEveryMs?: number
}

export type Sessions = {
  readonly size: number
  /** Begins a session; undefined when there are too many that cannot be moved out of memory. */
  begin(target: TargetSession, federation: Federation, owner: string): Session | undefined
  /** Begins a session that lives as long as a stream of this process. */
  pin(target: TargetSession, federation: Federation, owner: string): Session | undefined
  /** The session of an id, if it lives and belongs to `owner`; one that another process began goes on here. */
  find(id: string, federation: Federation, owner: string): Session | undefined
  /** Notes that a use of a session is over. */
  release(session: Session, use: Use): void
  end(session: Session): Promise<void>
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
const spareAfterMs = 60_000
const moveEveryMs = 10_000

/** The sessions of one endpoint. */
export function createSessions(options: SessionsOptions): Sessions {
  const { clock, ids, sharedKey, ttlMs, maxSessions, maxRemembered, sweepEveryMs } = options
  /** In the order of last use, about. */
  const live = new Map<string, Session>()
  /** Ids of sealed sessions that ended, with the time their lifetime is over. */
  const ended = new Map<string, number>()
  /** Sealed sessions created until then that are not live count as ended, because some of them were forgotten. */
  let forgottenUntil = 0
  let sweeping: NodeJS.Timeout | undefined

  /** Looks through the sessions from time to time for as long as there are any. */
  function keepSweeping(): void {
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
    for (const session of live.values()) if (isOver(session, now)) void end(session)
    const wallClock = clock.now()
    for (const [id, until] of ended) {
      if (until > wallClock) break
      ended.delete(id)
    }
  }

  function hold(session: Session): Session {
    live.set(session.id, session)
    keepSweeping()
    session.target.onDeath(() => void end(session))
    return session
  }

  function touch(session: Session): Session {
    const now = clock.monotonic()
    session.lastUsedAt = now
    // Moved rarely, because moving makes garbage; the order needs no more than that.
    if (now - session.movedAt < moveEveryMs || session.ended || !live.has(session.id)) return session
    session.movedAt = now
    live.delete(session.id)
    live.set(session.id, session)
    return session
  }

  async function end(session: Session): Promise<void> {
    if (session.ended) return
    session.ended = true
    live.delete(session.id)
    if (session.sealed) remember(session.id)
    for (const use of [...session.uses]) use.end()
    await session.target.close()
    session.leaving?.()
  }

  /** Lets go of a session because the process ends: another one may go on with it, if it can have the key. */
  function leave(session: Session): void {
    live.delete(session.id)
    const closed = session.sealed && sharedKey ? Promise.resolve() : session.target.close()
    closed.then(session.leaving)
  }

  function remember(id: string): void {
    ended.set(ids.fingerprint(id), clock.now() + sealedLifetimeMs)
    if (ended.size <= maxRemembered) return
    const [oldest] = ended
    if (oldest === undefined) return
    ended.delete(oldest[0])
    forgottenUntil = Math.max(forgottenUntil, oldest[1] - sealedLifetimeMs)
  }

  /** Makes room for one more: first what another process, or this one later, can go on with, then what is unused. */
  function makeRoom(): boolean {
    if (live.size < maxSessions) return true
    for (const session of live.values()) {
      if (session.uses.length > 0) continue
      if (session.sealed) {
        live.delete(session.id)
        return true
      }
      if (clock.monotonic() - session.lastUsedAt < spareAfterMs) continue
      void end(session)
      return true
    }
    return false
  }

  function isOver(session: Session, now: number): boolean {
    if (now >= session.endsAt) return true
    return session.uses.length === 0 && now - session.lastUsedAt >= ttlMs
  }

  function resume(id: string, federation: Federation, owner: string): Session | undefined {
    const sealed = ids.unseal(id)
    if (sealed === undefined || sealed.owner !== digestOwner(owner)) return undefined
    const age = clock.now() - sealed.createdAt
    if (age >= sealedLifetimeMs || age < -sealedLifetimeMs || sealed.createdAt <= forgottenUntil)
      return undefined
    if (ended.has(ids.fingerprint(id))) return undefined
    const target = federation.target.resume(sealed.state)
    if (target === undefined || !makeRoom()) return undefined
    return hold(newSession(id, target, federation, owner, age))
  }

  function newSession(
    id: string,
    target: TargetSession,
    federation: Federation,
    owner: string,
    sealedAgeMs: number | undefined,
  ): Session {
    const now = clock.monotonic()
    return {
      id,
      target,
      federation,
      owner,
      sealed: sealedAgeMs !== undefined,
      endsAt: sealedAgeMs === undefined ? Number.POSITIVE_INFINITY : now + sealedLifetimeMs - sealedAgeMs,
      lastUsedAt: now,
      movedAt: now,
      uses: [],
      ended: false,
      legacy: undefined,
      leaving: undefined,
    }
  }

  return {
    get size() {
      return live.size
    },
    begin(target, federation, owner) {
      if (!makeRoom()) return undefined
      const state = target.state()
      const id = state && ids.seal({ createdAt: clock.now(), owner: digestOwner(owner), state })
      return hold(newSession(id ?? randomUUID(), target, federation, owner, id === undefined ? undefined : 0))
    },
    pin(target, federation, owner) {
      if (!makeRoom()) return undefined
      return hold(newSession(randomUUID(), target, federation, owner, undefined))
    },
    find(id, federation, owner) {
      const session = live.get(id)
      if (session === undefined) return resume(id, federation, owner)
      if (session.owner !== owner) return undefined
      if (isOver(session, clock.monotonic()) || !stillConfigured(session, federation)) {
        void end(session)
        return undefined
      }
      return touch(session)
    },
    release(session, use) {
      const index = session.uses.indexOf(use)
      if (index !== -1) session.uses.splice(index, 1)
      touch(session)
      if (session.leaving && session.uses.length === 0) leave(session)
    },
    end,
    sweep,
    retain(federation) {
      for (const session of live.values()) if (!stillConfigured(session, federation)) void end(session)
    },
    async stop() {
      const leaving = [...live.values()].map((session) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        session.leaving = resolve
        for (const use of [...session.uses]) if (use.kind === 'stream') use.end()
        if (session.uses.length === 0) leave(session)
        return promise
      })
      await Promise.all(leaving)
    },
  }
}

function stillConfigured({ federation }: Session, current: Federation): boolean {
  return federation === current || federation.members.every((member) => current.members.includes(member))
}
