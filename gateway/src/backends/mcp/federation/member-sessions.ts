import { GatewayError } from '../../../lib/gateway-error.ts'
import type { TargetFailure } from '../message/message.ts'
import type { CallContext, Target, TargetSession } from '../targets/target.ts'
import type { NameMapping } from './names.ts'

/** Sessions of one client at several targets. */
export type MemberSessions = {
  readonly members: readonly Target[]
  readonly names: NameMapping
  /** Whether tool and prompt names have a target prefix. Resource URIs always have one. */
  readonly prefixed: boolean
  /** Whether failing targets are skipped instead of failing requests to all targets. */
  readonly failOpen: boolean
  /** Gateway version in `serverInfo`. */
  readonly version: string
  /** Sessions in configuration order; undefined for a terminated or unused target. */
  readonly sessions: (TargetSession | undefined)[]
  /** Returns an unused request id of the session. */
  newId(): string
}

export type MemberSession = { index: number; session: TargetSession }

/** Sessions of active targets that the client may use. */
export function activeSessions(
  memberSessions: MemberSessions,
  { targets }: Pick<CallContext, 'targets'>,
): MemberSession[] {
  return memberSessions.sessions.flatMap((session, index) => {
    if (session === undefined || targets?.permits(memberName(memberSessions, index)) === false) return []
    return { index, session }
  })
}

/** Active sessions without those of ejected targets. If all are ejected, each of them fails its requests. */
export function availableSessions(
  memberSessions: MemberSessions,
  context: Pick<CallContext, 'targets'>,
): MemberSession[] {
  const active = activeSessions(memberSessions, context)
  const available = active.filter((member) => !isEjected(memberSessions, member))
  return available.length > 0 ? available : active
}

function isEjected({ members }: MemberSessions, { index, session }: MemberSession): boolean {
  return session.isEjected?.() ?? members[index]?.isEjected?.() ?? false
}

export function memberName({ members }: MemberSessions, index: number): string {
  return members[index]?.name ?? ''
}

/** Adds the target name to a failure. */
export function memberFailure(
  memberSessions: MemberSessions,
  index: number,
  failure: TargetFailure,
): TargetFailure {
  const name = `target "${memberName(memberSessions, index)}"`
  if (failure.kind !== 'error' || failure.error.message.includes(name)) return failure
  const { code, message } = failure.error
  return { kind: 'error', error: new GatewayError(code, `${name}: ${message}`, { cause: failure.error }) }
}
