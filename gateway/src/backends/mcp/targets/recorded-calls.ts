import type { Exchange } from '../../../pipeline/exchange.ts'
import { createRecording, recordAttempt, recordFailure } from '../../../pipeline/recording/recording.ts'
import { mcpAttributes, nameOfMcpCall } from '../../../pipeline/tracing/span-attributes.ts'
import { endCall, startCall } from '../../../pipeline/tracing/trace.ts'
import type { Attribute } from '../../../telemetry/otlp/encode.ts'
import { writeTraceContext } from '../../../telemetry/tracing/trace-context.ts'
import type { MessageSink, TargetFailure } from '../message/message.ts'
import type { CallContext, CallRecorder, RecordedCall, Target, TargetSession } from './target.ts'

/**
 * Creates the recorder of calls of a request; undefined for requests without an entry in the ledger that are
 * not traced.
 */
export function callRecorder({ recording, trace, facts: { clock } }: Exchange): CallRecorder | undefined {
  const isTraced = trace?.isSampled === true
  if ((recording === undefined && !isTraced) || clock === undefined) return undefined
  const entries = recording ?? createRecording('off')
  return {
    begin(target, { value: { method, params } }) {
      const session = method === 'initialize' ? 'new' : 'existing'
      const call = { target, provider: undefined, model: undefined, session } as const
      const attempt = recordAttempt(entries, call, clock)
      if (!isTraced || typeof method !== 'string') return { attempt, span: undefined }
      const item = itemOf(params)
      const attributes: Attribute[] = [...mcpAttributes(method, item), ['mcp.target', target]]
      return { attempt, span: startCall(trace, nameOfMcpCall(method, item), attributes) }
    },
    received({ attempt }) {
      if (attempt.startedAt !== undefined) attempt.headAt ??= clock.monotonic()
    },
    ended({ attempt, span }, failure) {
      if (span !== undefined) endCall(trace, span, failure === undefined ? undefined : codeOf(failure))
      if (failure !== undefined) recordFailure(attempt, codeOf(failure), clock)
      else if (attempt.startedAt !== undefined) attempt.endedAt ??= clock.monotonic()
    },
  }
}

/** Records the calls of a target for the ledger: name, session, first message, end or failure. */
export function withRecordedCalls(target: Target): Target {
  const { openFor: _, ...rest } = target
  return {
    ...rest,
    open: () => recorded(target.open()),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && recorded(session)
    },
  }

  function recorded(session: TargetSession): TargetSession {
    return {
      ...session,
      request(message, context, sink) {
        const { recorder } = context
        if (recorder === undefined) return session.request(message, context, sink)
        const call = recorder.begin(target.name, message)
        return session.request(message, traced(context, call), recordedSink(sink, recorder, call))
      },
    }
  }
}

/** Tool or prompt, or URI of a resource. */
function itemOf(params: unknown): string | undefined {
  if (typeof params !== 'object' || params === null) return undefined
  const { name, uri }: { name?: unknown; uri?: unknown } = params
  if (typeof name === 'string') return name
  return typeof uri === 'string' ? uri : undefined
}

/** The context of a call with its span as the parent of the target's spans. */
function traced(context: CallContext, { span }: RecordedCall): CallContext {
  if (span === undefined) return context
  const headers = { ...context.headers }
  writeTraceContext(headers, span.context)
  return { ...context, headers, trace: span.context }
}

function recordedSink(sink: MessageSink, recorder: CallRecorder, call: RecordedCall): MessageSink {
  return {
    message(message, mark) {
      recorder.received(call)
      return sink.message(message, mark)
    },
    mark: (mark) => sink.mark(mark),
    end() {
      recorder.ended(call, undefined)
      sink.end()
    },
    fail(failure) {
      if (failure.kind === 'reply') call.attempt.status = failure.reply.status
      recorder.ended(call, failure)
      sink.fail(failure)
    },
  }
}

function codeOf(failure: TargetFailure): string {
  switch (failure.kind) {
    case 'error':
      return failure.error.code
    case 'reply':
      return `status_${failure.reply.status}`
    case 'refused':
      return `error_${failure.code}`
    case 'ended':
      return 'session_ended'
    case 'unknown':
      return `unknown_${failure.item}`
  }
}
