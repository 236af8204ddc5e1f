import type { Upload } from '../uploads/upload.ts'
import type { Batch } from './batch.ts'
import type { BatchFacts, StoredObject } from './object-ids.ts'
import type { ObjectAction } from './object-path.ts'

/** The part of a call about a file or batch. */
export type ObjectCall = {
  readonly action: ObjectAction
  /** Path behind that of the endpoint, with the id at the provider. */
  readonly suffix: string
  /** The object of the path, or the input file of a new batch, and its id for clients. */
  readonly stored: (StoredObject & { readonly text: string }) | undefined
  /** The checked requests of a body; undefined for other calls. */
  readonly batch: Batch | undefined
  /** The form of a file that is streamed. */
  readonly upload?: Upload | undefined
  /** Tokens that are charged if the call succeeds. */
  readonly charge: BatchFacts | undefined
}
