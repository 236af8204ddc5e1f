import { GatewayError } from '../../../lib/gateway-error.ts'
import type { TargetFailure } from '../message/message.ts'
import type { Target, TargetSession } from '../targets/target.ts'
import type { NameMapping } from './names.ts'

/** One client's sessions at several targets. */
export type MemberSessions = {
  readonly members: readonly Target[]
  readonly names: NameMapping
  /** Whether names of tools and prompts carry their target. URIs of resources always do. */
  readonly prefixed: boolean
  /** Whether a target that fails is left out, instead of failing what all targets are asked. */
  readonly failOpen: boolean
  /** Version the gateway introduces itself with. */
  readonly version: string
  /** In the order of the configuration; undefined for a target that is lost or was not asked. */
  readonly sessions: (TargetSession | undefined)[]
  /** An id that no request of the session has had. */
  newId(): string
}

export type MemberSession = { index: number; session: TargetSession }

/** The sessions that are not lost. */
export function activeSessions({ sessions: parts }: MemberSessions): MemberSession[] {
  return parts.flatMap((session, index) => (session ? { index, session } : []))
}

export function memberName({ members }: MemberSessions, index: number): string {
  return members[index]?.name ?? ''
}

/** A failure that says of which target it is. */
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
