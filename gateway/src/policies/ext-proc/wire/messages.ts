import type { JsonObject } from '../../../lib/json/json.ts'

/*
 * Messages of `envoy.service.ext_proc.v3.ExternalProcessor/Process`, as far as they are used here.
 */

/** Path of the method. */
export const processMethod = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'

/** The message of HTTP that a step belongs to. */
export type Direction = 'request' | 'response'

export type Phase = 'headers' | 'body' | 'trailers'

/** Body modes; the index is the number on the wire. */
export const bodyModes = ['none', 'streamed', 'buffered', 'bufferedPartial', 'fullDuplexStreamed'] as const
export type BodyMode = (typeof bodyModes)[number]

export type HeaderAction = 'append' | 'addIfAbsent' | 'overwrite' | 'overwriteIfExists'

/** A header field that the processor sets. `name` and `value` are as received. */
export type HeaderOption = {
  readonly name: string
  /** Bytes as Latin-1. */
  readonly value: string
  readonly action: HeaderAction
}

export type HeaderMutation = {
  readonly set: readonly HeaderOption[]
  readonly remove: readonly string[]
}

export type BodyMutation =
  | { readonly kind: 'replace'; readonly bytes: Uint8Array }
  | { readonly kind: 'streamed'; readonly bytes: Uint8Array; readonly isLast: boolean }

/** Response to one message. */
export type StepResponse = {
  readonly kind: 'step'
  readonly direction: Direction
  readonly phase: Phase
  /** The message of HTTP continues with the body of the response, without further steps. */
  readonly replacesMessage: boolean
  readonly headers: HeaderMutation | undefined
  readonly body: BodyMutation | undefined
}

/** A response that ends the request. */
export type ImmediateResponse = {
  readonly kind: 'immediate'
  readonly status: number
  readonly headers: HeaderMutation | undefined
  readonly body: Uint8Array
  readonly grpcStatus: number | undefined
}

/** Numbers of `ProcessingMode`. */
export type ModeOverride = {
  readonly responseHeaders: number
  readonly requestBody: number
  readonly responseBody: number
  readonly requestTrailers: number
  readonly responseTrailers: number
}

/** A message of the processor. `none` has no response. */
export type ProcessorMessage = {
  readonly response: StepResponse | ImmediateResponse | { readonly kind: 'none' }
  readonly metadata: JsonObject | undefined
  readonly modeOverride: ModeOverride | undefined
}
