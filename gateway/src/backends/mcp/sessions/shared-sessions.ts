import type { JsonObject } from '../../../lib/json/json.ts'
import type { Federation } from '../federation/federation.ts'
import type { Message } from '../message/message.ts'
import { createRemoteLegacyStream } from '../planes/remote-legacy-stream.ts'
import { createRemoteSession } from '../planes/remote-session.ts'
import { serveUse } from '../planes/serve-use.ts'
import type { Attached, SessionCall, SessionLinks, Signatures } from '../planes/session-links.ts'
import type { LimitScope } from './admission.ts'
import type { Endings } from './endings.ts'
import type { NewSession, Session, SessionClient, SessionUse } from './session.ts'
import type { SealedSession } from './session-id.ts'

/** The sessions of an endpoint on this data plane. */
export type LocalSessions = {
  readonly live: ReadonlyMap<string, Session>
  readonly endings: Endings
  fingerprint(id: string): string
  /** `Clock.monotonic()`. */
  now(): number
  isExpired(session: Session, now: number): boolean
  isEvictable(session: Session): boolean
  touch(session: Session): Session
  release(session: Session, use: SessionUse): void
  end(session: Session, reason: string): Promise<void>
  /** Ends a session in memory and its uses, but not its target. */
  close(session: Session, reason: string): void
  /** Removes a session from memory. */
  evict(session: Session): void
  find(id: string, federation: Federation, client: SessionClient): Session | undefined
  addCopy(id: string, home: number, copied: Omit<NewSession, 'slot'>): Session | undefined
  endReasonOf(id: string, client: SessionClient): string | undefined
  /** Unused sessions with slots of this data plane, in approximate order of last use. */
  candidates(scope: LimitScope, client: SessionClient): Iterable<Session>
}

/** Request of a new session for a slot; `bound` excludes sealed sessions. */
export type SlotRequest = {
  readonly scope: LimitScope
  readonly client: SessionClient
  readonly bound: boolean
}

/** Request of a client for a session that is not in memory. */
export type AttachRequest = {
  readonly id: string
  readonly federation: Federation
  readonly client: SessionClient
  readonly sealed: SealedSession
}

/** Sessions of an endpoint with other data planes. */
export type SharedSessions = {
  /** Whether the endings of other data planes are recorded here. */
  isLoaded(): boolean
  /** Sets the configuration for sessions that other data planes report. */
  configure(federation: Federation): void
  /** Reports the use of a sealed copy to its home, at intervals. */
  report(session: Session): void
  /** Ends the target of an ended session, and its copies. */
  end(session: Session, reason: string): Promise<void>
  /** Ends sessions that no data plane has used. */
  endIdle(sessions: readonly Session[]): Promise<void>
  /** Ends an unused session of any data plane. */
  free(request: SlotRequest): Promise<void>
  attach(request: AttachRequest): Promise<Session | undefined> | undefined
  forwardCancellation(session: Session, notification: Message): void
  /** Resolves when no other data plane uses the sessions. */
  drained(sessions: readonly Session[]): Promise<void>
  /** Reports that a session has no uses. */
  onUnused(session: Session): void
}

export const slotNeeded = 'it was not used, and its place was needed for another session'
export const unused = 'it was not used for too long'
export const runEnded = 'its process or worker thread has ended'

/** Interval of reports of a copy to its home. */
const reportIntervalMs = 60_000
/** Maximum number of sessions whose use on other data planes is checked for one slot. */
const maxTries = 16

/** Connects the sessions of an endpoint to those on other data planes. */
export function shareSessions(links: SessionLinks, local: LocalSessions): SharedSessions {
  const { self } = links
  const { live, endings } = local
  const attaching = new Map<string, Promise<Session | undefined>>()
  const waiting = new Map<Session, (() => void)[]>()
  let loading: Promise<void> | undefined
  let isLoaded = false
  let current: Federation | undefined
  links.serve({ call: handleCall, open: (channel, opening) => serveUse(channel, opening, home) })

  /** Bound sessions of this data plane. */
  const home = {
    touch(id: string, owner: string): Session | undefined {
      const session = boundSession(id, owner)
      return session && local.touch(session)
    },
    endReasonOf: (id: string, owner: string) => local.endReasonOf(id, { owner, quotaKey: owner }),
    release: local.release,
    end: local.end,
  }

  function boundSession(id: string, owner: string): Session | undefined {
    const session = live.get(id)
    if (session === undefined || session.sealed || session.home !== self) return undefined
    if (session.client.owner !== owner) return undefined
    if (!local.isExpired(session, local.now())) return session
    void local.end(session, unused)
    return undefined
  }

  /** Loads endings from before the start of this data plane; later ones arrive as calls. */
  function load(): Promise<void> {
    loading ??= links.endings().then((recorded) => {
      if (recorded) endings.restore(recorded)
      isLoaded = true
    })
    return loading
  }

  function handleCall(call: SessionCall): unknown {
    switch (call.kind) {
      case 'ended':
        return handleEnded(call)
      case 'usage':
        return call.ids.map(idleMsOf)
      case 'adopt':
        return adopt(call.id, call.client)
      case 'attach':
        return describe(call)
      case 'end': {
        const session = boundSession(call.id, call.owner)
        return session && local.end(session, call.reason)
      }
      case 'cancelled':
        return live.get(call.id)?.target.cancelPending?.({ text: call.text, value: {} })
      case 'endings':
        return endings.snapshot()
      case 'free':
        return freeHere(call)
      case 'drained':
        return whenUnused(call.ids)
      case 'extend':
        return home.touch(call.id, call.owner)?.legacy?.extend(call.lifeMs)
    }
  }

  function handleEnded({ id, owner, reason, sealed }: Extract<SessionCall, { kind: 'ended' }>): void {
    const session = live.get(id)
    endings.record({ fingerprint: local.fingerprint(id), owner, reason, sealed })
    if (session === undefined || session.ended) return
    local.close(session, reason)
    session.onUnused?.()
  }

  function idleMsOf(id: string): number {
    const session = live.get(id)
    if (session === undefined) return -1
    return session.uses.length > 0 ? 0 : Math.max(0, local.now() - session.lastUsedAt)
  }

  function adopt(id: string, client: SessionClient): void {
    const session = live.get(id)
    if (session?.client.owner === client.owner) session.lastUsedAt = local.now()
    else if (session === undefined && current !== undefined) {
      const federation = current
      void load().then(() => local.find(id, federation, client))
    }
  }

  /** Describes a bound session for a copy. A session of other targets than the sender's ends. */
  function describe(call: Extract<SessionCall, { kind: 'attach' }>): Attached {
    const { id, owner, signatures } = call
    const session = boundSession(id, owner)
    if (session === undefined) return { kind: 'ended', reason: home.endReasonOf(id, owner) }
    if (session.federation.members.some(({ name, signature = '' }) => signature !== signatures[name])) {
      const reason = 'the configuration of its targets has changed'
      void local.end(session, reason)
      return { kind: 'ended', reason }
    }
    local.touch(session)
    const legacy = session.legacy !== undefined
    const state = session.target.state(legacy ? 'all' : 'bound') ?? {}
    return { kind: 'session', state, revision: session.revision, legacy }
  }

  /** Updates the last use of sessions from other data planes. */
  async function refresh(sessions: readonly Session[]): Promise<void> {
    const usage = await links.usage(sessions.map(({ id }) => id))
    const now = local.now()
    for (const session of sessions) {
      const idleMs = usage.get(session.id)
      if (idleMs !== undefined) session.lastUsedAt = Math.max(session.lastUsedAt, now - idleMs)
    }
  }

  async function freeHere({ scope, client, bound }: SlotRequest): Promise<boolean> {
    let tries = 0
    for (const session of [...local.candidates(scope, client)]) {
      if (session.sealed && bound) continue
      if (session.sealed && scope === 'total') {
        local.evict(session)
        return true
      }
      if (!local.isEvictable(session)) continue
      if (session.sealed) {
        await refresh([session])
        tries += 1
      }
      if (local.isEvictable(session)) {
        void local.end(session, slotNeeded)
        return true
      }
      if (tries >= maxTries) return false
    }
    return false
  }

  async function whenUnused(ids: readonly string[]): Promise<void> {
    await Promise.all(
      ids.map((id) => {
        const session = live.get(id)
        if (session === undefined || session.uses.length === 0) return undefined
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.set(session, [...(waiting.get(session) ?? []), resolve])
        return promise
      }),
    )
  }

  async function confirm(
    session: Session,
    { id, federation, client }: AttachRequest,
  ): Promise<Session | undefined> {
    await refresh([session])
    if (!local.isExpired(session, local.now())) return local.find(id, federation, client)
    await local.end(session, unused)
    return undefined
  }

  async function attachBound({
    id,
    federation,
    client,
    sealed,
  }: AttachRequest): Promise<Session | undefined> {
    const { owner } = client
    const call = { kind: 'attach', id, owner, signatures: signaturesOf(federation) } as const
    const attached = await links
      .attach(sealed.home, call)
      .catch((): Attached => ({ kind: 'ended', reason: runEnded }))
    if (attached.kind === 'ended') {
      const { reason = runEnded } = attached
      endings.record({ fingerprint: local.fingerprint(id), owner, reason, sealed: false })
      return undefined
    }
    return live.get(id) ?? copyOf(attached, { id, federation, client, sealed })
  }

  function copyOf(
    { state, revision, legacy }: { state: JsonObject; revision: string | undefined; legacy: boolean },
    { id, federation, client, sealed }: AttachRequest,
  ): Session | undefined {
    const { owner } = client
    const target = federation.target.resume(state, (name) =>
      createRemoteSession(name, (use) => links.open(sealed.home, { ...use, id, owner })),
    )
    const copy = target && local.addCopy(id, sealed.home, { target, federation, client, revision })
    if (copy === undefined) return undefined
    if (legacy) copy.legacy = createRemoteLegacyStream(copy, links, local)
    return local.touch(copy)
  }

  return {
    isLoaded: () => isLoaded,
    configure(federation) {
      current = federation
    },
    report(session) {
      const now = local.now()
      if (!session.sealed || session.home === self || now - session.reportedAt < reportIntervalMs) return
      session.reportedAt = now
      const { owner, quotaKey } = session.client
      links.notify(session.home, { kind: 'adopt', id: session.id, client: { owner, quotaKey } })
    },
    async end(session, reason) {
      const { id, client, sealed, home: plane, target } = session
      const { owner } = client
      if (!sealed && plane !== self) {
        await links.end(plane, { kind: 'end', id, owner, reason })
        return
      }
      await Promise.all([target.close(), links.announce({ kind: 'ended', id, owner, reason, sealed })])
    },
    async endIdle(sessions) {
      await refresh(sessions)
      const now = local.now()
      for (const session of sessions) if (local.isExpired(session, now)) void local.end(session, unused)
    },
    async free(request) {
      if (!(await freeHere(request))) {
        const { owner, quotaKey } = request.client
        await links.free({ kind: 'free', ...request, client: { owner, quotaKey } })
      }
    },
    attach(request) {
      const { id, sealed } = request
      if (sealed.boundTo === undefined) {
        const session = live.get(id)
        if (session !== undefined) return confirm(session, request)
        return isLoaded ? undefined : load().then(() => local.find(id, request.federation, request.client))
      }
      if (sealed.home === self || sealed.home >= links.count) return undefined
      const known = attaching.get(id)
      if (known !== undefined) return known
      const attached = attachBound(request).finally(() => attaching.delete(id))
      attaching.set(id, attached)
      return attached
    },
    forwardCancellation(session, { text }) {
      void links.announce({ kind: 'cancelled', id: session.id, text })
    },
    drained: (sessions) => links.announce({ kind: 'drained', ids: sessions.map(({ id }) => id) }),
    onUnused(session) {
      const resolves = waiting.get(session)
      waiting.delete(session)
      for (const resolve of resolves ?? []) resolve()
    },
  }
}

/** Digests of the configured targets. */
function signaturesOf({ members }: Federation): Signatures {
  return Object.fromEntries(members.map(({ name, signature = '' }) => [name, signature]))
}
