import type { JsonObject } from '../../../lib/json/json.ts'
import { type Channel, PeerError, type Peers } from '../../../lib/planes/peers.ts'
import type { LimitScope } from '../sessions/admission.ts'
import type { EndingsSnapshot } from '../sessions/endings.ts'
import type { SessionClient } from '../sessions/session.ts'
import type { MemberUse } from './remote-session.ts'

/** A session by its id, for its owner. */
export type SessionAccess = { readonly id: string; readonly owner: string }

/** Calls between the sessions of one endpoint on different data planes. */
export type SessionCall =
  /** The session has ended. */
  | (SessionAccess & { readonly kind: 'ended'; readonly reason: string; readonly sealed: boolean })
  /** Milliseconds since the last use of each session here; 0 in use, -1 without a copy. */
  | { readonly kind: 'usage'; readonly ids: readonly string[] }
  /** A copy of a session of the receiver is in use. */
  | { readonly kind: 'adopt'; readonly id: string; readonly client: SessionClient }
  /** Requests a copy of a bound session. `signatures` are the configured targets of the sender. */
  | (SessionAccess & { readonly kind: 'attach'; readonly signatures: Signatures })
  /** Ends a bound session. */
  | (SessionAccess & { readonly kind: 'end'; readonly reason: string })
  /** A request of the session was cancelled. */
  | { readonly kind: 'cancelled'; readonly id: string; readonly text: string }
  /** Requests all recorded endings. */
  | { readonly kind: 'endings' }
  /** Requests the end of an unused session. */
  | {
      readonly kind: 'free'
      readonly scope: LimitScope
      readonly client: SessionClient
      readonly bound: boolean
    }
  /** Resolves when copies of the sessions are unused. */
  | { readonly kind: 'drained'; readonly ids: readonly string[] }
  /** Extends the stream of the HTTP+SSE transport. */
  | (SessionAccess & { readonly kind: 'extend'; readonly lifeMs: number })

/** Channels between the sessions of one endpoint on different data planes. */
export type SessionOpening =
  | (SessionAccess & MemberUse)
  /** A request of the HTTP+SSE transport: its responses use the stream of the session. */
  | (SessionAccess & { readonly kind: 'legacy'; readonly text: string; readonly idText: string })
  /** Messages outside requests, for the stream of a session of the HTTP+SSE transport. */
  | (SessionAccess & { readonly kind: 'legacyMessages' })

/** Messages of the sender of a request of the HTTP+SSE transport, in addition to its responses. */
export type LegacyMessage = { readonly kind: 'joined'; readonly joined: boolean }

export type Attached =
  | {
      readonly kind: 'session'
      readonly state: JsonObject
      readonly revision: string | undefined
      readonly legacy: boolean
    }
  | { readonly kind: 'ended'; readonly reason: string | undefined }

/** Digests of target configurations by target name. */
export type Signatures = Readonly<Record<string, string>>

/** Reactions to calls and channels of other data planes. */
export type SessionHandlers = {
  call(call: SessionCall): unknown
  open(channel: Channel, opening: SessionOpening): void
}

/** Connections of one endpoint's sessions to those on other data planes. */
export type SessionLinks = {
  readonly self: number
  readonly count: number
  serve(handlers: SessionHandlers): void
  /** Calls all other data planes. Resolves after their responses; data planes that end count as done. */
  announce(call: SessionCall): Promise<void>
  /** Sends a call without waiting. */
  notify(plane: number, call: SessionCall): void
  attach(plane: number, call: Extract<SessionCall, { kind: 'attach' }>): Promise<Attached>
  end(plane: number, call: Extract<SessionCall, { kind: 'end' }>): Promise<void>
  /** Shortest time since the last use on another data plane, by id; without an entry there is no copy. */
  usage(ids: readonly string[]): Promise<Map<string, number>>
  /** Endings recorded by another data plane. */
  endings(): Promise<EndingsSnapshot | undefined>
  /** Ends an unused session of another data plane; resolves to whether one ended. */
  free(call: Extract<SessionCall, { kind: 'free' }>): Promise<boolean>
  open(plane: number, opening: SessionOpening): Channel
  /** Referenced, so that it is not collected before its links: a second hub would take its calls. */
  readonly hub: SessionHub
}

/** Sessions of all endpoints of a data plane, for other data planes. */
export type SessionHub = {
  /** Whether there are other data planes. */
  readonly isShared: boolean
  /** Undefined with a single data plane. */
  join(scope: string): SessionLinks | undefined
}

const service = 'mcp sessions'
const callTimeoutMs = 10_000
/** Programs have a grace period at their end. */
const endTimeoutMs = 60_000
/** Requests of a session may run for long. */
const drainTimeoutMs = 60 * 60_000

/** Creates the hub of a data plane. There is one at a time. */
export function createSessionHub(peers: Peers): SessionHub {
  if (peers.count === 1) return { isShared: false, join: () => undefined }
  // An endpoint without configuration and sessions is collected.
  const endpoints = new Map<string, WeakRef<SessionHandlers>>()
  peers.serve(service, {
    call(request) {
      if (!isEnvelope<SessionCall>(request)) return undefined
      return endpoints.get(request.scope)?.deref()?.call(request.content)
    },
    open(channel, greeting) {
      const handlers = isEnvelope<SessionOpening>(greeting)
        ? endpoints.get(greeting.scope)?.deref()
        : undefined
      if (handlers === undefined || !isEnvelope<SessionOpening>(greeting)) channel.close()
      else handlers.open(channel, greeting.content)
    },
  })
  const hub: SessionHub = {
    isShared: true,
    join: (scope) => ({ ...createLinks(peers, scope, endpoints), hub }),
  }
  return hub
}

function createLinks(
  peers: Peers,
  scope: string,
  endpoints: Map<string, WeakRef<SessionHandlers>>,
): Omit<SessionLinks, 'hub'> {
  const { self, count } = peers
  const others = Array.from({ length: count }, (_, plane) => plane).filter((plane) => plane !== self)
  let served: SessionHandlers | undefined

  function call(plane: number, content: SessionCall, timeoutMs = callTimeoutMs): Promise<unknown> {
    return peers.call(plane, service, { scope, content }, timeoutMs)
  }

  return {
    self,
    count,
    serve(handlers) {
      served = handlers
      endpoints.set(scope, new WeakRef(served))
    },
    async announce(content) {
      const timeoutMs = content.kind === 'drained' ? drainTimeoutMs : callTimeoutMs
      await Promise.allSettled(others.map((plane) => call(plane, content, timeoutMs)))
    },
    notify(plane, content) {
      // A data plane that ends has no copy either.
      call(plane, content).catch(() => {})
    },
    async attach(plane, content) {
      const answer = await call(plane, content)
      return isAttached(answer) ? answer : { kind: 'ended', reason: undefined }
    },
    async end(plane, content) {
      // The sessions of a data plane end with it.
      await call(plane, content, endTimeoutMs).catch(() => {})
    },
    async usage(ids) {
      const shortest = new Map<string, number>()
      const answers = await Promise.allSettled(others.map((plane) => call(plane, { kind: 'usage', ids })))
      for (const answer of answers) {
        if (answer.status !== 'fulfilled' || !Array.isArray(answer.value)) continue
        for (const [index, id] of ids.entries()) {
          const idleMs: unknown = answer.value[index]
          if (typeof idleMs !== 'number' || idleMs < 0) continue
          shortest.set(id, Math.min(idleMs, shortest.get(id) ?? Number.POSITIVE_INFINITY))
        }
      }
      return shortest
    },
    async endings() {
      for (const plane of others) {
        const answer = await call(plane, { kind: 'endings' }).catch(() => undefined)
        if (isSnapshot(answer)) return answer
      }
      return undefined
    },
    async free(content) {
      for (const plane of others) {
        if ((await call(plane, content).catch(() => false)) === true) return true
      }
      return false
    },
    open(plane, content) {
      try {
        return peers.open(plane, service, { scope, content })
      } catch (error) {
        if (error instanceof PeerError) return closedChannel()
        throw error
      }
    },
  }
}

/** Channel to a data plane that has ended. */
function closedChannel(): Channel {
  return { post() {}, onMessage() {}, onClose: queueMicrotask, close() {} }
}

/** Content of a message with its endpoint. Messages between data planes have the types of this build. */
function isEnvelope<Content>(value: unknown): value is { scope: string; content: Content } {
  return typeof value === 'object' && value !== null && 'scope' in value && 'content' in value
}

function isAttached(value: unknown): value is Attached {
  return typeof value === 'object' && value !== null && 'kind' in value
}

function isSnapshot(value: unknown): value is EndingsSnapshot {
  return typeof value === 'object' && value !== null && 'presumedEndedUntil' in value
}
