import { asGatewayError } from '../../../lib/gateway-error.ts'
import type { MessageFlow, MessageSink } from './message.ts'

/** A sink for what several sources say together, and the flows that feed it. */
export type MergedSink = {
  readonly sink: MessageSink
  /** Makes a source part of the client's flow. */
  add<T extends { flow: MessageFlow }>(source: T): T
}

/** The flow of what is answered at once. */
export const idleFlow: MessageFlow = { resume() {}, cancel() {} }

/** Answers a request in several steps, with one flow for all of them. What it throws is the request's failure. */
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
