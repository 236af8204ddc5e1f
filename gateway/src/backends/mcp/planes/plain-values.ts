import { GatewayError, type GatewayErrorCode } from '../../../lib/gateway-error.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { EventMark, TargetFailure } from '../message/message.ts'
import type { CallContext } from '../targets/target.ts'

/** A `TargetFailure` as plain data. */
export type PlainFailure =
  | { readonly kind: 'error'; readonly code: GatewayErrorCode; readonly message: string }
  | {
      readonly kind: 'reply'
      readonly status: number
      readonly headers: Headers
      readonly body: Uint8Array | undefined
    }
  | Exclude<TargetFailure, { kind: 'error' | 'reply' }>

/** A `CallContext` as plain data, without permissions and credentials, which the sender has applied. */
export type PlainContext = Pick<
  CallContext,
  'headers' | 'protocolVersion' | 'lastEventId' | 'maxResponseBytes'
>

/** Messages of a stream between data planes. `credit` flows in the opposite direction, in characters. */
export type StreamMessage =
  | { readonly kind: 'message'; readonly text: string; readonly mark?: EventMark | undefined }
  | { readonly kind: 'mark'; readonly mark: EventMark }
  | { readonly kind: 'end' }
  | { readonly kind: 'fail'; readonly failure: PlainFailure }
  | { readonly kind: 'credit'; readonly chars: number }

export function toPlainFailure(failure: TargetFailure): PlainFailure {
  switch (failure.kind) {
    case 'error':
      return { kind: 'error', code: failure.error.code, message: failure.error.message }
    case 'reply': {
      const { status, headers, body } = failure.reply
      // A copy, because a clone of a view contains its whole buffer.
      return {
        kind: 'reply',
        status,
        headers,
        body: body instanceof Uint8Array ? Uint8Array.from(body) : undefined,
      }
    }
    default:
      return failure
  }
}

export function fromPlainFailure(failure: PlainFailure): TargetFailure {
  switch (failure.kind) {
    case 'error':
      return { kind: 'error', error: new GatewayError(failure.code, failure.message) }
    case 'reply': {
      const { status, headers, body } = failure
      return { kind: 'reply', reply: { status, headers, body: body && Buffer.from(body) } }
    }
    default:
      return failure
  }
}

export function toPlainContext(context: CallContext): PlainContext {
  const { headers, protocolVersion, lastEventId, maxResponseBytes } = context
  return {
    headers,
    maxResponseBytes,
    ...(protocolVersion === undefined ? undefined : { protocolVersion }),
    ...(lastEventId === undefined ? undefined : { lastEventId }),
  }
}

/** The context of a call of another data plane. Its channel, not its context, reports cancellation. */
export function fromPlainContext(context: PlainContext, client: () => string): CallContext {
  return { ...context, cancellation: never, client, isAuthorized: true }
}

const never: CallContext['cancellation'] = { cancelled: false, onCancel() {} }

/** Failure of a use of a session whose data plane has ended. */
export const planeEnded: TargetFailure = { kind: 'ended', reason: 'its worker thread has ended' }
