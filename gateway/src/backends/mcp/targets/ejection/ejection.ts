import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { Send } from '../../../../net/http-client/send.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { Health } from '../../../../upstream/health.ts'
import { idleFlow } from '../../message/merged-sink.ts'
import type { TargetFailure } from '../../message/message.ts'
import type { Target, TargetSession } from '../target.ts'

/** Requests to targets have no facts of a client. */
const noFacts = {}

/** Decorates `send`: each response and each failure of the target counts for its health. */
export function withOutcomes(send: Send, health: Health): Send {
  return (request) =>
    send(request).then(
      (reply) => {
        health.responded(reply, noFacts)
        return reply
      },
      (error: unknown) => {
        if (error instanceof GatewayError && error.code.startsWith('upstream_')) health.failed()
        throw error
      },
    )
}

/**
 * Fails requests to an ejected target immediately. Notifications and responses of clients pass: they belong
 * to requests before the ejection.
 */
export function withEjection(
  target: Target,
  health: Health | undefined,
  { clock }: Pick<CompileContext, 'clock'>,
): Target {
  if (health === undefined) return target
  const isEjected = () => health.isEjected()
  return {
    ...target,
    isEjected,
    noResponse: () => health.failed(),
    open: () => ejectable(target.open()),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && ejectable(session)
    },
  }

  function ejectable(session: TargetSession): TargetSession {
    return {
      ...session,
      isEjected,
      request(message, context, sink) {
        if (!isEjected()) return session.request(message, context, sink)
        sink.fail(ejectionFailure(target.name, health?.ejectedUntil() ?? 0, clock.monotonic()))
        return idleFlow
      },
    }
  }
}

function ejectionFailure(name: string, until: number, now: number): TargetFailure {
  const seconds = Math.max(1, Math.ceil((until - now) / 1_000))
  const message = `target "${name}" is ejected after failed requests: retry in ${seconds} s`
  return { kind: 'error', error: new GatewayError('upstream_connect', message) }
}
