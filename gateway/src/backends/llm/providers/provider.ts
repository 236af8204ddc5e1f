import type { Headers } from '../../../net/http/headers.ts'
import type { OutgoingRequest, Send } from '../../../net/http-client/send.ts'
import type { Endpoint } from '../request/endpoints.ts'

/** One LLM service: address, supported calls and authentication. */
export type Provider = {
  /** Name in the configuration and in metric labels. */
  readonly name: string
  /** Base address, with the version segment if `paths` lack it; undefined if `params.baseUrl` is required. */
  readonly address: string | undefined
  /** Path of each supported call, relative to the base address. */
  readonly paths: Readonly<Partial<Record<Endpoint, string>>>
  /** `max_tokens` is sent as `max_completion_tokens` for this model. */
  renamesMaxTokens?(model: string): boolean
  /** Required headers; headers of the client take precedence. */
  readonly defaultHeaders?: Headers
  /** Adds the credential to the request. Asynchronous for signatures and fetched tokens. */
  authorize(request: OutgoingRequest, credential: string): void | Promise<void>
  /** Replaces the network for a provider inside the gateway. */
  readonly local?: Send
}

/** Adds `Authorization: Bearer`, the most common form. */
export function bearer(request: OutgoingRequest, credential: string): void {
  request.headers['authorization'] = `Bearer ${credential}`
}
