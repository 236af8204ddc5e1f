import { withPermissions } from '../permissions/permissions.ts'
import { withRemoteSessions } from '../planes/remotable.ts'
import { withInitializeLimit } from '../targets/initialize-limit.ts'
import type { Target } from '../targets/target.ts'
import { createMultiplex } from './multiplex.ts'

/** Targets of one endpoint. */
export type Federation = {
  /** Combined target. */
  readonly target: Target
  /** Targets in configuration order; an unchanged target is the same object across reloads. */
  readonly members: readonly Target[]
}

export type FederationOptions = {
  prefixMode: 'conditional' | 'always' | 'never'
  failOpen: boolean
  version: string
  /** Time limit of a target for the response to `initialize`. */
  initializeTimeoutMs: number
}

/** Combines targets. A single target is used directly unless its names require a prefix. */
export function federate(members: readonly Target[], options: FederationOptions): Federation | undefined {
  const [only] = members
  if (only === undefined) return undefined
  const { prefixMode, failOpen, version, initializeTimeoutMs } = options
  const guarded = members.map((member) =>
    withInitializeLimit(withPermissions(withRemoteSessions(member)), initializeTimeoutMs),
  )
  const [guardedOnly] = guarded
  if (guardedOnly && guarded.length === 1 && prefixMode !== 'always') return { target: guardedOnly, members }
  return {
    target: createMultiplex(guarded, { prefixed: prefixMode !== 'never', failOpen, version }),
    members,
  }
}
