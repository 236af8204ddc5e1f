import type { Exchange } from '../../../pipeline/exchange.ts'
import { type AttemptRecord, recordAttempt, recordFailure } from '../../../pipeline/recording/recording.ts'
import type { Message, MessageSink, TargetFailure } from '../message/message.ts'
import type { CallRecorder, Target, TargetSession } from './target.ts'

/** Creates the recorder of calls of a request; undefined for requests without an entry in the ledger. */
export function callRecorder({ recording, facts: { clock } }: Exchange): CallRecorder | undefined {
  if (recording === undefined || clock === undefined) return undefined
  return {
    begin(target, session) {
      const call = { target, provider: undefined, model: undefined, session }
      return recordAttempt(recording, call, clock)
    },
    received(attempt) {
      if (attempt.startedAt !== undefined) attempt.headAt ??= clock.monotonic()
    },
    ended(attempt, failure) {
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
        const attempt = recorder.begin(target.name, sessionOf(message))
        return session.request(message, context, recordedSink(sink, recorder, attempt))
      },
    }
  }
}

function sessionOf({ value }: Message): 'new' | 'existing' {
  return value['method'] === 'initialize' ? 'new' : 'existing'
}

function recordedSink(sink: MessageSink, recorder: CallRecorder, attempt: AttemptRecord): MessageSink {
  return {
    message(message, mark) {
      recorder.received(attempt)
      return sink.message(message, mark)
    },
    mark: (mark) => sink.mark(mark),
    end() {
      recorder.ended(attempt, undefined)
      sink.end()
    },
    fail(failure) {
      if (failure.kind === 'reply') attempt.status = failure.reply.status
      recorder.ended(attempt, failure)
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
