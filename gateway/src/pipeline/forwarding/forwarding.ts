import type { Headers } from '../../net/http/headers.ts'

/**
 * Differences between the client's request and the forwarded request, written by functions of
 * `pipeline/request-edits.ts`.
 */
export type Forwarding = {
  /** Replaced method. */
  method?: string | undefined
  /** Rewritten path without query. */
  path: string | undefined
  /** Replaced query, with its question mark if it is not empty; undefined for the client's. */
  query?: string | undefined
  /** Host header towards the upstream: a value, the client's own, or by default the upstream's. */
  host: string | 'client' | undefined
  /**
   * Origin of `Exchange.body` if it is not the client's. Only `recoded` bytes have the content coding of the
   * forwarded headers.
   */
  body?: 'decoded' | 'replaced' | 'recoded' | undefined
  /** Header edits in order; applied to a copy. */
  readonly headerEdits: ((headers: Headers) => void)[]
}
