import type { ClientEndpoint } from '../request/endpoints.ts'
import type { BatchFacts } from './object-ids.ts'
import type { ObjectEndpoint } from './object-path.ts'

/** Form of a request in a batch. */
export type BatchFormat = {
  /** Call that creates the batch. */
  readonly creates: ObjectEndpoint
  /** Member with the body. */
  readonly body: 'body' | 'params'
  readonly members: ReadonlySet<string>
}

/** One request of a batch as JSON text. */
export type BatchItem = {
  readonly text: Buffer
  /** Line of the file, or item of the list, from 1. Empty lines do not count. */
  readonly position: number
  /** The body as changed by guards; undefined for that of the text. */
  changed: Buffer | undefined
}

/** The requests of a batch. They have one model and one API. */
export type Batch = {
  readonly format: BatchFormat
  readonly endpoint: ClientEndpoint
  readonly model: string
  /** Empty after they are written. */
  items: readonly BatchItem[]
  readonly facts: BatchFacts
}

/** Lines of a file for `/v1/batches`. */
export const lineFormat: BatchFormat = {
  creates: 'batches',
  body: 'body',
  members: new Set(['custom_id', 'method', 'url', 'body']),
}

/** Items of `requests` of `/v1/messages/batches`. */
export const messageFormat: BatchFormat = {
  creates: 'message_batches',
  body: 'params',
  members: new Set(['custom_id', 'params']),
}

/** Most requests of one batch, by the limits of both APIs. */
export const maxRequests = 100_000
