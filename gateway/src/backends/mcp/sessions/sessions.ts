import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import type { Federation } from '../federation/federation.ts'
import type { Message } from '../message/message.ts'
import type { SessionLinks } from '../planes/session-links.ts'
import type { Admission, LimitScope, Slot, Slots } from './admission.ts'
import { createEndings, sealedLifetimeMs } from './endings.ts'
import {
  createSession,
  isConfigured,
  type NewSession,
  type Session,
  type SessionClient,
  type SessionUse,
} from './session.ts'
import { digestOwner, type SealedSession, type SessionIds } from './session-id.ts'
import {
  type LocalSessions,
  runEnded,
  type SharedSessions,
  shareSessions,
  slotNeeded,
  unused,
} from './shared-sessions.ts'

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
  /** Connections to the sessions of other data planes; undefined for a single data plane. */
  links?: SessionLinks | undefined
}

export type Sessions = {
  readonly size: number
  /** Acquires a slot for a new session, if necessary from an unused session. */
  admit(client: SessionClient): Admission | Promise<Admission>
  /** Starts a session in its slot. */
  begin(opened: NewSession): Session
  /** Starts a session bound to a stream of this data plane. */
  beginBound(opened: NewSession): Session
  /**
   * Ends an unused session with programs or streams: of this client, or of any client for the total limit.
   */
  endUnused(scope: LimitScope, client: SessionClient): void
  /** Returns the active session of an id if it belongs to `client`; resumes a sealed session. */
  find(id: string, federation: Federation, client: SessionClient): Session | undefined
  /** Finds a session with the help of other data planes; undefined if they cannot have it. */
  attach(id: string, federation: Federation, client: SessionClient): Promise<Session | undefined> | undefined
  /** Reason for the end of a session of `client`, while stored. */
  endReasonOf(id: string, client: SessionClient): string | undefined
  /** Ends a use of a session. */
  release(session: Session, use: SessionUse): void
  /** Forwards the cancellation of a request to copies of its session on other data planes. */
  forwardCancellation(session: Session, notification: Message): void
  /** Ends a session on all data planes; `reason` is reported to its client. */
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

/** Time without use after which a new session may replace a session. */
const evictableAfterMs = 60_000
const reorderIntervalMs = 10_000
/** Maximum wait for the first message after `initialize`, for sessions with programs or streams. */
const unconfirmedMs = 30_000
/** Maximum number of copies of sessions of other data planes. */
const maxCopies = 10_000
const targetsChanged = 'the configuration of its targets has changed'

/** Slot of copies, which their home counts. */
const noSlot: Slot = { release() {} }

/** Creates the sessions of one endpoint on this data plane. */
export function createSessions(options: SessionsOptions): Sessions {
  const { clock, ids, sharedKey, ttlMs, slots, sweepEveryMs, links } = options
  const self = links?.self ?? 0
  /** Identifies this run of the data plane in ids of bound sessions. */
  const runId = randomUUID()
  /** Sessions in approximate order of last use. */
  const live = new Map<string, Session>()
  const endings = createEndings(clock, options.maxEndedIds)
  let copies = 0
  /** Resolves when no other data plane uses a sealed session, during shutdown. */
  let unusedElsewhere: Promise<void> | undefined
  let sweeping: NodeJS.Timeout | undefined
  const local: LocalSessions = {
    live,
    endings,
    fingerprint: ids.fingerprint,
    now: clock.monotonic,
    isExpired,
    isEvictable,
    touch,
    release,
    end,
    close,
    evict,
    find,
    addCopy,
    endReasonOf,
    candidates,
  }
  const shared: SharedSessions | undefined = links && shareSessions(links, local)

  /** Sweeps periodically while sessions exist. */
  function scheduleSweep(): void {
    if (sweepEveryMs === undefined || sweeping !== undefined) return
    sweeping = setInterval(() => {
      sweep()
      if (live.size > 0 || endings.size > 0) return
      clearInterval(sweeping)
      sweeping = undefined
    }, sweepEveryMs)
    sweeping.unref()
  }

  function sweep(): void {
    const now = clock.monotonic()
    /** Sealed sessions that other data planes may have used. */
    const idle: Session[] = []
    for (const session of live.values()) {
      if (!isExpired(session, now)) continue
      if (expiresHere(session, now)) void end(session, unused)
      else if (session.home === self) idle.push(session)
      else evict(session)
    }
    if (idle.length > 0) void shared?.endIdle(idle)
    endings.sweep()
  }

  /** Whether this data plane alone decides on the expiry of a session. */
  function expiresHere({ sealed, home, endsAt }: Session, now: number): boolean {
    return links === undefined || now >= endsAt || (!sealed && home === self)
  }

  function add(session: Session): Session {
    live.set(session.id, session)
    if (session.home !== self) copies += 1
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
    shared?.report(session)
    return session
  }

  /** Ends a session in memory and its uses. */
  function close(session: Session, reason: string): void {
    session.ended = true
    evict(session)
    const { id, client, sealed } = session
    endings.record({ fingerprint: ids.fingerprint(id), owner: client.owner, reason, sealed })
    for (const use of [...session.uses]) use.end(reason)
  }

  async function end(session: Session, reason: string): Promise<void> {
    if (session.ended) return
    close(session, reason)
    if (shared === undefined) await session.target.close()
    else await shared.end(session, reason)
    session.onUnused?.()
  }

  /** Detaches a session at shutdown: another process may resume it if the key is shared. */
  function detach(session: Session): void {
    evict(session)
    closeDetached(session).then(session.onUnused)
  }

  async function closeDetached({ home, sealed, target }: Session): Promise<void> {
    if (home !== self || (sealed && sharedKey)) return
    if (sealed) await unusedElsewhere
    await target.close()
  }

  function evict(session: Session): void {
    if (live.delete(session.id) && session.home !== self) copies -= 1
    session.slot.release()
    void session.target.closeUnshared?.()
  }

  function admit(client: SessionClient, purpose: 'begin' | 'resume'): Admission | Promise<Admission> {
    const scope = slots.exhausted(client.quotaKey)
    if (scope === undefined) return slots.admit(client.quotaKey)
    if (freeSlot(scope, client, purpose) || shared === undefined || purpose === 'resume')
      return slots.admit(client.quotaKey)
    return shared.free({ scope, client, bound: false }).then(() => slots.admit(client.quotaKey))
  }

  /**
   * Frees the slot of an unused session. For the total limit, and for resumption, a resumable session leaves
   * memory. A new session of a client at its limit ends an older one, so that targets have no more sessions
   * either. Other data planes may use a sealed session, so its end requires their consent.
   */
  function freeSlot(scope: LimitScope, client: SessionClient, purpose: 'begin' | 'resume'): boolean {
    const mayEvict = scope === 'total' || purpose === 'resume'
    for (const session of candidates(scope, client)) {
      if (mayEvict && session.sealed) {
        evict(session)
        return true
      }
      if (!isEvictable(session)) continue
      if (session.sealed && shared !== undefined) return false
      void end(session, slotNeeded)
      return true
    }
    return false
  }

  /** Unused sessions with slots of this data plane, in approximate order of last use. */
  function* candidates(scope: LimitScope, client: SessionClient): Generator<Session> {
    for (const session of live.values()) {
      if (session.home === self && session.uses.length === 0 && countsToward(scope, session, client))
        yield session
    }
  }

  function isEvictable({ uses, lastUsedAt, ended }: Session): boolean {
    return !ended && uses.length === 0 && clock.monotonic() - lastUsedAt >= evictableAfterMs
  }

  function isExpired(session: Session, now: number): boolean {
    if (now >= session.endsAt) return true
    const limitMs = session.confirmed || session.sealed ? ttlMs : Math.min(ttlMs, unconfirmedMs)
    return session.uses.length === 0 && now - session.lastUsedAt >= limitMs
  }

  /** The content of an id that belongs to the client. */
  function unseal(id: string, client: SessionClient): SealedSession | undefined {
    const sealed = ids.unseal(id)
    return sealed?.owner === digestOwner(client.owner) ? sealed : undefined
  }

  function find(id: string, federation: Federation, client: SessionClient): Session | undefined {
    const session = live.get(id)
    if (session === undefined) return resume(id, federation, client)
    if (session.client.owner !== client.owner) return undefined
    const now = clock.monotonic()
    if (isExpired(session, now)) {
      if (expiresHere(session, now)) void end(session, unused)
      if (session.home === self || session.ended) return undefined
      evict(session)
      return resume(id, federation, client)
    }
    if (!isConfigured(session, federation)) {
      void end(session, targetsChanged)
      return undefined
    }
    return touch(session)
  }

  function resume(id: string, federation: Federation, client: SessionClient): Session | undefined {
    const sealed = unseal(id, client)
    if (sealed === undefined || sealed.boundTo !== undefined || shared?.isLoaded() === false) return undefined
    const age = clock.now() - sealed.createdAt
    if (age >= sealedLifetimeMs || age < -sealedLifetimeMs) return undefined
    if (endings.has(ids.fingerprint(id), sealed.createdAt)) return undefined
    const target = federation.target.resume(sealed.state)
    if (target === undefined) return undefined
    const { revision } = sealed
    const home = links === undefined ? self : sealed.home % links.count
    if (home !== self) {
      const copy = addCopy(id, home, { target, federation, client, revision }, age)
      if (copy !== undefined) shared?.report(copy)
      return copy
    }
    const admitted = admit(client, 'resume')
    if (admitted instanceof Promise || admitted.kind === 'refused') return undefined
    const { slot } = admitted
    return add(newSession(id, self, { target, federation, client, revision, slot }, age))
  }

  /** Adds the copy of a session of another data plane; undefined at the limit of copies in use. */
  function addCopy(
    id: string,
    home: number,
    copied: Omit<NewSession, 'slot'>,
    sealedAgeMs?: number,
  ): Session | undefined {
    if (copies >= maxCopies) {
      const idle = live.values().find((session) => session.home !== self && session.uses.length === 0)
      if (idle === undefined) return undefined
      evict(idle)
    }
    return add(newSession(id, home, { ...copied, slot: noSlot }, sealedAgeMs))
  }

  function newSession(id: string, home: number, opened: NewSession, ageMs: number | undefined): Session {
    const lifeMs = ageMs === undefined ? undefined : sealedLifetimeMs - ageMs
    return createSession({ id, home, now: clock.monotonic(), lifeMs }, opened)
  }

  function beginBound(opened: NewSession): Session {
    const { client, revision } = opened
    const owner = digestOwner(client.owner)
    const content = { createdAt: clock.now(), owner, home: self, state: {}, boundTo: runId, revision }
    return add(newSession(ids.seal(content) ?? randomUUID(), self, opened, undefined))
  }

  function endReasonOf(id: string, client: SessionClient): string | undefined {
    const reason = endings.reasonOf(ids.fingerprint(id), client.owner)
    if (reason !== undefined) return reason
    const boundTo = unseal(id, client)?.boundTo
    return boundTo === undefined || boundTo === runId ? undefined : runEnded
  }

  function release(session: Session, use: SessionUse): void {
    const index = session.uses.indexOf(use)
    if (index !== -1) session.uses.splice(index, 1)
    touch(session)
    if (session.uses.length > 0) return
    if (session.onUnused) detach(session)
    shared?.onUnused(session)
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
      const id = state && ids.seal({ createdAt: clock.now(), owner, home: self, state, revision })
      return id === undefined ? beginBound(opened) : add(newSession(id, self, opened, 0))
    },
    beginBound,
    endUnused(scope, client) {
      for (const session of candidates(scope, client)) {
        if (session.sealed || !isEvictable(session)) continue
        void end(session, slotNeeded)
        return
      }
      void shared?.free({ scope, client, bound: true })
    },
    find,
    attach(id, federation, client) {
      const sealed = shared && unseal(id, client)
      return sealed && shared?.attach({ id, federation, client, sealed })
    },
    endReasonOf,
    release,
    forwardCancellation: (session, notification) => shared?.forwardCancellation(session, notification),
    end,
    sweep,
    retain(federation) {
      shared?.configure(federation)
      for (const session of live.values())
        if (!isConfigured(session, federation)) void end(session, targetsChanged)
    },
    async stop() {
      const sessions = [...live.values()]
      const mustClose = sharedKey ? [] : sessions.filter(({ sealed, home }) => sealed && home === self)
      unusedElsewhere = mustClose.length > 0 ? shared?.drained(mustClose) : undefined
      const detached = sessions.map((session) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        session.onUnused = resolve
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
