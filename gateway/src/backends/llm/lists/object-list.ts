import type { Exchange } from '../../../pipeline/exchange.ts'
import type { ObjectEndpoint } from '../batches/object-path.ts'

/** An object of a list: its id for the client, and an exchange with the call that reads it. */
export type ListedObject = { readonly id: string; readonly exchange: Exchange }

/** A page of the objects of a client. */
export type ObjectList = {
  readonly endpoint: ObjectEndpoint
  /** In the order of the response. */
  objects: readonly ListedObject[]
  readonly hasMore: boolean
  /** The id that continues the list. */
  readonly cursor: string | undefined
}

declare module '../../../pipeline/exchange.ts' {
  interface LlmState {
    /** Private to `backends/llm`; undefined for other calls. */
    list?: ObjectList
  }
}
