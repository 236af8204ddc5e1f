import { GatewayError } from '../../../lib/gateway-error.ts'
import type { MessageSink, TargetFailure } from '../message/message.ts'
import type { Target, TargetSession } from './target.ts'

/**
 * Limits the time of a target for the response to `initialize`, regardless of earlier messages. The failure
 * belongs to the target, so a federation with `failOpen` continues without it.
 */
export function withInitializeLimit(
  target: Target,
  limitMs: number,
  onOutcome: (failure: TargetFailure | undefined) => void = () => {},
): Target {
  return {
    ...target,
    open: () => limited(target.open()),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && limited(session)
    },
  }

  function limited(session: TargetSession): TargetSession {
    return {
      ...session,
      request(message, context, sink) {
        if (message.value['method'] !== 'initialize') return session.request(message, context, sink)
        const limit = limitSink(sink, message.value['id'], onOutcome)
        const timer = setTimeout(() => {
          limit.expire(initializeTimeout(target.name, limitMs))
          target.noResponse?.()
          flow.cancel()
        }, limitMs)
        timer.unref()
        limit.onOver(() => clearTimeout(timer))
        const flow = session.request(message, context, limit.sink)
        return {
          resume: () => flow.resume(),
          cancel() {
            clearTimeout(timer)
            flow.cancel()
          },
        }
      },
    }
  }
}

function limitSink(sink: MessageSink, id: unknown, onOutcome: (failure: TargetFailure | undefined) => void) {
  let expired = false
  let over = () => {}
  const guarded: MessageSink = {
    message(message, mark) {
      if (expired) return true
      if (message.value['id'] === id && message.value['method'] === undefined) {
        over()
        onOutcome(undefined)
      }
      return sink.message(message, mark)
    },
    mark(mark) {
      if (!expired) sink.mark(mark)
    },
    end() {
      over()
      if (!expired) sink.end()
    },
    fail(failure) {
      over()
      if (expired) return
      onOutcome(failure)
      sink.fail(failure)
    },
  }
  return {
    sink: guarded,
    onOver(listener: () => void) {
      over = listener
    },
    expire(failure: TargetFailure) {
      if (expired) return
      expired = true
      onOutcome(failure)
      sink.fail(failure)
    },
  }
}

function initializeTimeout(name: string, limitMs: number): TargetFailure {
  const message = `target "${name}" did not answer initialize within ${limitMs / 1_000} s`
  return { kind: 'error', error: new GatewayError('upstream_timeout', message) }
}
