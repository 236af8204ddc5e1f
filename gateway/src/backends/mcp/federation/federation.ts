import { isJsonObject } from '../../../lib/json/json.ts'
import { withChecks } from '../checks/checks.ts'
import { withUserLogin } from '../logins/login-session.ts'
import { withUserAuthorization } from '../logins/user-authorization.ts'
import type { TargetFailure } from '../message/message.ts'
import { withPermissions } from '../permissions/permissions.ts'
import { withRemoteSessions } from '../planes/remotable.ts'
import { withClientAuthorization } from '../targets/authorization/authorization.ts'
import { withInitializeLimit } from '../targets/initialize-limit.ts'
import { withRecordedCalls } from '../targets/recorded-calls.ts'
import type { Target, TargetSession } from '../targets/target.ts'
import { withTraceContext } from '../targets/trace-context.ts'
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
  /** Receives the outcome of each `initialize`: undefined, or the failure. */
  onInitialized?: ((target: string, failure: TargetFailure | undefined) => void) | undefined
}

/** Combines targets. A single target is used directly unless its names require a prefix. */
export function federate(members: readonly Target[], options: FederationOptions): Federation | undefined {
  const [only] = members
  if (only === undefined) return undefined
  const { prefixMode, failOpen, version, initializeTimeoutMs, onInitialized } = options
  const guarded = members.map((member) =>
    withUserLogin(
      withInitializeLimit(
        withPermissions(
          withChecks(
            withRecordedCalls(
              withTraceContext(withUserAuthorization(withClientAuthorization(withRemoteSessions(member)))),
            ),
          ),
        ),
        initializeTimeoutMs,
        onInitialized && ((failure) => onInitialized(member.name, failure)),
      ),
    ),
  )
  const multiplex = createMultiplex(guarded, { prefixed: prefixMode !== 'never', failOpen, version })
  const [guardedOnly] = guarded
  const isAlone = guarded.length === 1 && prefixMode !== 'always'
  const combined = isAlone && guardedOnly ? withName(guardedOnly) : multiplex
  // A session continues with its targets after others were added, so it may have been one of a single target.
  const resume: Target['resume'] = (state, remote) => {
    const { alone } = state
    if (typeof alone !== 'string') return multiplex.resume(state, remote)
    const member = guarded.find(({ name }) => name === alone)
    return member && withName(member).resume(state, remote)
  }
  return { target: { ...combined, resume }, members }
}

/** Adds the target name to the state of sessions at a single target. */
function withName(target: Target): Target {
  return {
    ...target,
    open: () => named(target.open()),
    resume({ state }, remote) {
      const session = isJsonObject(state) ? target.resume(state, remote) : undefined
      return session && named(session)
    },
  }

  function named(session: TargetSession): TargetSession {
    return {
      ...session,
      state(remote) {
        const state = session.state(remote)
        return state && { alone: target.name, state }
      },
    }
  }
}
