import type { Target, TargetSession } from '../targets/target.ts'

/** State of a target session that stays on the home of its session. */
const remoteState = { remote: true } as const

/**
 * Makes the sessions of a target available to other data planes. Rules and names apply on the data plane that
 * received the request, so this is the innermost decoration of a target.
 */
export function withRemoteSessions(target: Target): Target {
  const { openFor: _, ...rest } = target
  return {
    ...rest,
    open: () => exposed(target.open()),
    resume(state, remote) {
      if (state['remote'] === true) return remote?.(target.name)
      const session = target.resume(state)
      return session && exposed(session)
    },
  }

  function exposed(session: TargetSession): TargetSession {
    return {
      ...session,
      member: (name) => (name === target.name ? session : undefined),
      state: (remote) =>
        remote === 'all' ? remoteState : (session.state() ?? (remote === 'bound' ? remoteState : undefined)),
    }
  }
}
