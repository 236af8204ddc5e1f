import type { CancellationSource } from '../../../../lib/cancellation.ts'
import { asGatewayError, GatewayError } from '../../../../lib/gateway-error.ts'
import type { BodySource } from '../../../../net/http/body.ts'
import type { EventMark, Message, MessageFlow, MessageSink, TargetFailure } from '../../message/message.ts'

/** Maximum size of a message of a target, in bytes. */
const maxMessageBytes = 32 * 1024 * 1024

/** A pending request or stream: forwards messages to its sink until its end. */
export type Call = MessageFlow & {
  over: boolean
  /** Maximum size of one message. */
  readonly maxBytes: number
  source: BodySource | undefined
  /** Cancels the upstream request, also before its response; undefined for streams of `listen`. */
  readonly cancellation: CancellationSource | undefined
  message(message: Message, mark?: EventMark): boolean
  mark(mark: EventMark): void
  end(): void
  fail(failure: TargetFailure): void
  failWith(error: unknown): void
}

export type CallOptions = { maxBytes?: number | undefined; cancellation?: CancellationSource | undefined }

/** Creates a call of the target `name`. */
export function createCall(
  name: string,
  sink: MessageSink,
  { maxBytes = maxMessageBytes, cancellation }: CallOptions = {},
): Call {
  const call: Call = {
    over: false,
    maxBytes,
    source: undefined,
    cancellation,
    message: (message, mark) => call.over || sink.message(message, mark),
    mark(mark) {
      if (!call.over) sink.mark(mark)
    },
    end() {
      if (call.over) return
      call.over = true
      sink.end()
    },
    fail(failure) {
      if (call.over) return
      call.over = true
      sink.fail(failure)
    },
    failWith: (error) => call.fail(targetFailure(name, error)),
    resume: () => call.source?.resume(),
    cancel() {
      if (call.over) return
      call.over = true
      call.source?.cancel()
      cancellation?.cancel()
    },
  }
  return call
}

/** Failure of a call with the target name, which identifies it among several targets. */
export function targetFailure(name: string, error: unknown): TargetFailure {
  if (!(error instanceof GatewayError)) return { kind: 'error', error: asGatewayError(error) }
  const message = `target "${name}": ${error.message}`
  return { kind: 'error', error: new GatewayError(error.code, message, { cause: error }) }
}

/** Failure for an invalid response of the target. */
export function invalidResponse(name: string, problem: string): TargetFailure {
  return {
    kind: 'error',
    error: new GatewayError('upstream_invalid', `target "${name}" answered with ${problem}`),
  }
}
