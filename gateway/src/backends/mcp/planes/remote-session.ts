import { asGatewayError } from '../../../lib/gateway-error.ts'
import type { Channel } from '../../../lib/planes/peers.ts'
import type { MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import type { Listening, TargetSession } from '../targets/target.ts'
import { receiveStream } from './message-stream.ts'
import {
  fromPlainFailure,
  type PlainContext,
  type PlainFailure,
  planeEnded,
  type StreamMessage,
  toPlainContext,
} from './plain-values.ts'

/** A use of one target of a session on its home. */
export type MemberUse = {
  readonly kind: 'request' | 'deliver' | 'listen'
  /** Target name. */
  readonly member: string
  /** JSON text of the message; empty for `listen`. */
  readonly text: string
  readonly context: PlainContext
}

/** Messages of the home. */
export type HomeMessage =
  | StreamMessage
  | { readonly kind: 'delivered'; readonly failure: PlainFailure | undefined }
  | { readonly kind: 'listening'; readonly stream: boolean }

/**
 * The session at one target of a session on another data plane. Each use has a channel, so that a use ends
 * with either side. The home alone ends the session and reports its end.
 */
export function createRemoteSession(member: string, open: (use: MemberUse) => Channel): TargetSession {
  return {
    request: (message, context, sink) =>
      requestFrom(
        () => open({ kind: 'request', member, text: message.text, context: toPlainContext(context) }),
        sink,
      ),
    deliver: (message, context) =>
      deliverTo(() =>
        open({ kind: 'deliver', member, text: message.text, context: toPlainContext(context) }),
      ),
    listen: (context, sink) =>
      listenTo(() => open({ kind: 'listen', member, text: '', context: toPlainContext(context) }), sink),
    state: () => undefined,
    close: () => Promise.resolve(),
    onTerminated() {},
  }
}

function requestFrom(open: () => Channel, sink: MessageSink): MessageFlow {
  const channel = open()
  const stream = receiveStream(channel, sink)
  channel.onMessage((message) => isStreamMessage(message) && stream.receive(message))
  channel.onClose(stream.closed)
  return stream.flow
}

async function deliverTo(open: () => Channel): Promise<TargetFailure | undefined> {
  const { promise, resolve } = Promise.withResolvers<TargetFailure | undefined>()
  try {
    const channel = open()
    channel.onMessage((message) => {
      if (!isHomeMessage(message) || (message.kind !== 'delivered' && message.kind !== 'fail')) return
      channel.close()
      resolve(message.failure && fromPlainFailure(message.failure))
    })
    channel.onClose(() => resolve(planeEnded))
  } catch (error) {
    return { kind: 'error', error: asGatewayError(error) }
  }
  return promise
}

async function listenTo(open: () => Channel, sink: MessageSink): Promise<Listening> {
  const { promise, resolve } = Promise.withResolvers<Listening>()
  const channel = open()
  let isOpen = false
  const stream = receiveStream(channel, {
    ...sink,
    fail(failure) {
      if (isOpen) sink.fail(failure)
      else resolve({ kind: 'failed', failure })
    },
  })
  channel.onMessage((message) => {
    if (!isHomeMessage(message) || message.kind === 'delivered') return
    if (message.kind !== 'listening') {
      stream.receive(message)
    } else if (message.stream) {
      isOpen = true
      resolve({ kind: 'flow', flow: stream.flow })
    } else {
      stream.flow.cancel()
      resolve({ kind: 'none' })
    }
  })
  channel.onClose(stream.closed)
  return promise
}

/** Messages between data planes have the types of this build: a kind identifies them. */
export function isHomeMessage(message: unknown): message is HomeMessage {
  return typeof message === 'object' && message !== null && 'kind' in message
}

export function isStreamMessage(message: unknown): message is StreamMessage {
  return isHomeMessage(message) && message.kind !== 'delivered' && message.kind !== 'listening'
}
