import type { BodySource } from '../../../net/http/body.ts'
import type { LlmApi } from '../../../pipeline/llm-message.ts'
import type { ContentReader } from '../content/content-reader.ts'
import type { Reading } from '../content/reading.ts'
import type { Content, Outcome } from '../run.ts'
import type { Delivery } from './delivery.ts'

/** A streamed answer to be checked. */
export type GuardedStream = {
  readonly api: LlmApi
  readonly reader: ContentReader
  readonly reading: Reading
  readonly source: BodySource
  /** Asks the guards; undefined for content that cannot be shown to them. */
  check(texts: readonly Content[] | undefined): Promise<Outcome>
  /** Most bytes of the stream that are held. */
  readonly maxBufferedBytes: number
}

/** A stream that is held until it is checked. */
export type DeliveredStream = GuardedStream & {
  readonly delivery: Delivery
  /** Told which guard ended it. */
  onRejected(guard: string): void
}
