import { GatewayError } from '../../../lib/gateway-error.ts'
import type { TargetFailure } from '../message/message.ts'
import type { Target, TargetSession } from '../targets/target.ts'
import type { Names } from './names.ts'

/** One client's sessions at several targets. */
export type Fleet = {
  readonly members: readonly Target[]
  readonly names: Names
  /** Whether names of tools and prompts carry their target. URIs of resources always do. */
  readonly prefixed: boolean
  /** Whether a target that fails is left out, instead of failing what all targets are asked. */
  readonly failOpen: boolean
  /** Version the gateway introduces itself with. */
  readonly version: string
  /** In the order of the configuration; undefined for a target that is lost or was not asked. */
  readonly parts: (TargetSession | undefined)[]
  /** An id that no request of the session has had. */
  newId(): string
}

export type Part = { index: number; session: TargetSession }

/** The sessions that are not lost. */
export function liveParts({ parts }: Fleet): Part[] {
  return parts.flatMap((session, index) => (session ? { index, session } : []))
}

export function nameOf({ members }: Fleet, index: number): string {
  return members[index]?.name ?? ''
}

/** A failure that says of which target it is. */
export function failureOf(fleet: Fleet, index: number, failure: TargetFailure): TargetFailure {
  const name = `target "${nameOf(fleet, index)}"`
  if (failure.kind !== 'error' || failure.error.message.includes(name)) return failure
  const { code, message } = failure.error
  return { kind: 'error', error: new GatewayError(code, `${name}: ${message}`, { cause: failure.error }) }
}
