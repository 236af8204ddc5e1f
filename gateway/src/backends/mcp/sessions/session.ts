import type { Federation } from '../federation/federation.ts'
import type { Message, MessageFlow, MessageSink } from '../message/message.ts'
import type { CallContext, TargetSession } from '../targets/target.ts'
import type { Slot } from './admission.ts'

/** An active request or stream of a session. */
export type SessionUse = {
  readonly kind: 'request' | 'stream'
  /** Called at the end of the session, with the reason, and for streams at shutdown. */
  end(reason?: string): void
}

/** The single stream of a session of the HTTP+SSE transport (2024-11-05). */
export type LegacyStream = {
  /** Starts a request with its response on the stream; returns false while the client does not read. */
  start(request: LegacyRequest, context: CallContext): boolean | Promise<boolean>
  /** Extends the stream by the lifetime of a new token, in milliseconds. */
  extend(lifeMs: number): void
  /** The stream on its data plane; undefined for copies of the session. */
  readonly own: OwnLegacyStream | undefined
}

export type OwnLegacyStream = {
  /** Adds the responses to a request to the stream; undefined while the client does not read. */
  join(request: LegacyRequest, flow: MessageFlow): MessageSink | undefined
  /** Adds messages outside requests. */
  joinMessages(flow: MessageFlow): MessageSink
}

/** A request of the HTTP+SSE transport, with its id as JSON text. */
export type LegacyRequest = { readonly json: Message; readonly idText: string }

/** Owner of a session. */
export type SessionClient = {
  /** Identity with access to the session; empty without authentication. */
  readonly owner: string
  /** Key for session limits: the identity, or the network of the client's address. */
  readonly quotaKey: string
}

/** Properties of a new session. */
export type NewSession = Pick<Session, 'target' | 'federation' | 'client' | 'revision' | 'slot'>

/** A session of one client, or the copy of a session on a data plane other than its home. */
export type Session = {
  readonly id: string
  readonly target: TargetSession
  /** Targets at the start of the session. */
  readonly federation: Federation
  readonly client: SessionClient
  /** Slot of the session in memory. Copies have none. */
  readonly slot: Slot
  /** Revision from the response to `initialize`. */
  readonly revision: string | undefined
  /** Whether another process can resume the session. */
  readonly sealed: boolean
  /** Index of the data plane that started the session: counts it, ends it when unused, has its programs. */
  readonly home: number
  /** `Clock.monotonic()` at which a sealed session expires, even with active uses. */
  readonly endsAt: number
  lastUsedAt: number
  /** Set by the first message after `initialize`. */
  confirmed: boolean
  /** Time of the last move to the end of the usage order. */
  reorderedAt: number
  /** Time of the last report of a copy to the home. */
  reportedAt: number
  /**
   * Active uses: a session in use does not expire. An array, because frequent additions and deletions of a
   * Set retain dead tables, and with them each request, until the next full garbage collection.
   */
  readonly uses: SessionUse[]
  ended: boolean
  /** Set for sessions of the HTTP+SSE transport. */
  legacy: LegacyStream | undefined
  /** Called after the last use has ended; set during shutdown. */
  onUnused: (() => void) | undefined
}

/** Whether all targets of the session are part of the current configuration. */
export function isConfigured({ federation }: Pick<Session, 'federation'>, current: Federation): boolean {
  return federation === current || federation.members.every((member) => current.members.includes(member))
}

/** Start of a session: time, lifetime of its id, and data plane. */
export type SessionStart = {
  readonly id: string
  readonly home: number
  /** `Clock.monotonic()`. */
  readonly now: number
  /** Remaining lifetime of a sealed session in milliseconds; undefined for bound sessions. */
  readonly lifeMs: number | undefined
}

/** Creates an unused session. */
export function createSession({ id, home, now, lifeMs }: SessionStart, opened: NewSession): Session {
  return {
    ...opened,
    id,
    home,
    sealed: lifeMs !== undefined,
    endsAt: lifeMs === undefined ? Number.POSITIVE_INFINITY : now + lifeMs,
    lastUsedAt: now,
    confirmed: false,
    reorderedAt: now,
    reportedAt: Number.NEGATIVE_INFINITY,
    uses: [],
    ended: false,
    legacy: undefined,
    onUnused: undefined,
  }
}
