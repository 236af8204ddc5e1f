import { asGatewayError } from '../../../lib/gateway-error.ts'
import type { MessageFlow, MessageSink } from './message.ts'

/** A sink with several sources, and the flows of these sources. */
export type MergedSink = {
  readonly sink: MessageSink
  /** Whether the response is complete or cancelled. */
  isOver(): boolean
  /** Adds the flow of a source to the client's flow. */
  add<T extends { flow: MessageFlow }>(source: T): T
}

/** Flow of a response without pending messages. */
export const idleFlow: MessageFlow = { resume() {}, cancel() {} }

/** Starts a request. Its error becomes the failure of the sink. */
export function startFlow(sink: MessageSink, start: () => MessageFlow): MessageFlow {
  try {
    return start()
  } catch (error) {
    sink.fail({ kind: 'error', error: asGatewayError(error) })
    return idleFlow
  }
}

/** Handles a request in several steps with one flow. Errors of `run` fail the request. */
export function withMergedSink(sink: MessageSink, run: (merged: MergedSink) => Promise<void>): MessageFlow {
  const flows: MessageFlow[] = []
  let over = false
  const guarded: MessageSink = {
    message: (message, mark) => over || sink.message(message, mark),
    mark(mark) {
      if (!over) sink.mark(mark)
    },
    end() {
      if (!over) sink.end()
      over = true
    },
    fail(failure) {
      if (!over) sink.fail(failure)
      over = true
    },
  }
  const merged: MergedSink = {
    sink: guarded,
    isOver: () => over,
    add(source) {
      flows.push(source.flow)
      if (over) source.flow.cancel()
      return source
    },
  }
  run(merged).catch((error: unknown) => guarded.fail({ kind: 'error', error: asGatewayError(error) }))
  return {
    resume() {
      for (const flow of flows) flow.resume()
    },
    cancel() {
      over = true
      for (const flow of flows) flow.cancel()
    },
  }
}
