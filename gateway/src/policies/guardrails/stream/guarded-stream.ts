import type { BodySource } from '../../../net/http/body.ts'
import type { LlmApi } from '../../../pipeline/llm-message.ts'
import type { ContentReader } from '../content/content-reader.ts'
import type { Reading } from '../content/reading.ts'
import type { Outcome } from '../run.ts'
import type { Content } from '../view.ts'
import type { Delivery } from './delivery.ts'

/** Streamed response to check. */
export type GuardedStream = {
  readonly api: LlmApi
  readonly reader: ContentReader
  readonly reading: Reading
  readonly source: BodySource
  /** Runs the guards; undefined for unreadable content. */
  check(texts: readonly Content[] | undefined): Promise<Outcome>
  /** Maximum buffered size in bytes. */
  readonly maxBufferedBytes: number
}

/** Stream that is delivered after its check. */
export type DeliveredStream = GuardedStream & {
  readonly delivery: Delivery
  /** Receives the name of the rejecting guard. */
  onRejected(guard: string): void
}
