import { withPermissions } from '../permissions/permissions.ts'
import { withInitializeLimit } from '../targets/initialize-limit.ts'
import type { Target } from '../targets/target.ts'
import { createMultiplex } from './multiplex.ts'

/** The targets behind one endpoint, as the sessions opened at it know them. */
export type Federation = {
  /** All of them as one. */
  readonly target: Target
  /** In the order of the configuration; an unchanged target is the same object across reloads. */
  readonly members: readonly Target[]
}

export type FederationOptions = {
  prefixMode: 'conditional' | 'always' | 'never'
  failOpen: boolean
  version: string
  /** Longest wait for a target's answer to `initialize`. */
  initializeTimeoutMs: number
}

/** A single target is passed through as it is, unless its names are to carry its own. */
export function federate(members: readonly Target[], options: FederationOptions): Federation | undefined {
  const [only] = members
  if (only === undefined) return undefined
  const { prefixMode, failOpen, version, initializeTimeoutMs } = options
  const guarded = members.map((member) => withInitializeLimit(withPermissions(member), initializeTimeoutMs))
  const [guardedOnly] = guarded
  if (guardedOnly && guarded.length === 1 && prefixMode !== 'always') return { target: guardedOnly, members }
  return {
    target: createMultiplex(guarded, { prefixed: prefixMode !== 'never', failOpen, version }),
    members,
  }
}
