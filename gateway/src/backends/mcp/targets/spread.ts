import { GatewayError } from '../../../lib/gateway-error.ts'
import type { Destination } from '../../../upstream/destination.ts'
import { compileEndpointChoice, type EndpointServers } from '../../../upstream/endpoints.ts'
import type { MessageSink, TargetFailure } from '../message/message.ts'
import type { Target, TargetSession } from './target.ts'

export type SpreadOptions = {
  readonly name: string
  readonly servers: EndpointServers
  /** Compiles the target at one server. */
  readonly compileAt: (destination: Destination) => Target
  readonly sessionless: boolean
  /** Credentials of calls, which are the same for all servers of a backend. */
  readonly authorize: () => Destination['authorize']
  readonly random: () => number
}

/**
 * A target on the endpoints of a backend. A session belongs to the endpoint that it started at, because MCP
 * servers store sessions in memory. After the removal of that endpoint its requests continue there while it
 * responds; then the session ends, and the client initializes again, at another endpoint.
 */
export function compileSpreadTarget(options: SpreadOptions): Target {
  const { name, servers, compileAt, sessionless, authorize, random } = options
  const targets = new WeakMap<Destination, Target>()
  const choose = compileEndpointChoice(servers, random)

  function targetAt(destination: Destination): Target {
    const known = targets.get(destination)
    if (known !== undefined) return known
    const target = compileAt(destination)
    targets.set(destination, target)
    return target
  }

  const isListed = (destination: Destination) =>
    servers.destinations().some((listed) => listed.destination === destination)
  const bound = (session: TargetSession, destination: Destination) =>
    withEnd(session, () => !isListed(destination), name)

  return {
    name,
    sessionless,
    authorize,
    isEjected() {
      const destinations = servers.destinations()
      return destinations.length > 0 && destinations.every(({ health }) => health?.isEjected() === true)
    },
    open() {
      const destination = choose()
      if (destination === undefined) return unreachableSession(name)
      return bound(targetAt(destination).open(), destination)
    },
    resume(state, remote) {
      const { a: address } = state
      const found = servers
        .destinations()
        .find(
          ({ destination: { origin } }) => typeof address !== 'string' || address.startsWith(`${origin}/`),
        )
      const session = found && targetAt(found.destination).resume(state, remote)
      return session && bound(session, found.destination)
    },
  }
}

/** Reports failures of a removed server as the end of the session. */
function withEnd(session: TargetSession, isRemoved: () => boolean, name: string): TargetSession {
  const failureOf = (failure: TargetFailure): TargetFailure =>
    failure.kind === 'error' && isRemoved()
      ? { kind: 'ended', reason: `the server of target "${name}" was removed` }
      : failure
  const ending = (sink: MessageSink): MessageSink => ({
    message: (message, mark) => sink.message(message, mark),
    mark: (mark) => sink.mark(mark),
    end: () => sink.end(),
    fail: (failure) => sink.fail(failureOf(failure)),
  })
  return {
    ...session,
    request: (message, context, sink) => session.request(message, context, ending(sink)),
    async deliver(message, context) {
      const failure = await session.deliver(message, context)
      return failure && failureOf(failure)
    },
    async listen(context, sink) {
      const listening = await session.listen(context, ending(sink))
      return listening.kind === 'failed'
        ? { kind: 'failed', failure: failureOf(listening.failure) }
        : listening
    },
  }
}

function unreachableSession(name: string): TargetSession {
  const failure = (): TargetFailure => ({
    kind: 'error',
    error: new GatewayError('upstream_connect', `target "${name}" has no endpoints`),
  })
  return {
    request(_message, _context, sink) {
      let isCancelled = false
      queueMicrotask(() => {
        if (!isCancelled) sink.fail(failure())
      })
      return {
        resume() {},
        cancel() {
          isCancelled = true
        },
      }
    },
    deliver: () => Promise.resolve(failure()),
    listen: () => Promise.resolve({ kind: 'failed', failure: failure() }),
    state: () => undefined,
    close: () => Promise.resolve(),
    onTerminated() {},
  }
}
