import type { Headers } from '../../../net/http/headers.ts'
import type { OutgoingRequest, Send } from '../../../net/http-client/send.ts'
import type { Endpoint } from '../request/endpoints.ts'

/** One LLM service: where it is, which calls it offers, and how it is told who is calling. */
export type Provider = {
  /** As written in the configuration, and the metric label. */
  readonly name: string
  /** Base address, version segment included where the calls' paths lack it; undefined: `params.baseUrl` is required. */
  readonly address: string | undefined
  /** Path of each call it offers, behind the base address. */
  readonly paths: Readonly<Partial<Record<Endpoint, string>>>
  /** Whether `max_tokens` has to be sent as `max_completion_tokens` for a model. */
  renamesMaxTokens?(model: string): boolean
  /** Headers it needs whatever the client sent; a header the client did send wins. */
  readonly defaultHeaders?: Headers
  /** Puts the credential on the request. Asynchronous where it has to sign or fetch a token. */
  authorize(request: OutgoingRequest, credential: string): void | Promise<void>
  /** For a provider that answers inside the gateway: takes the place of the network. */
  readonly local?: Send
}

/** `Authorization: Bearer`, as nearly all of them want it. */
export function bearer(request: OutgoingRequest, credential: string): void {
  request.headers['authorization'] = `Bearer ${credential}`
}
