/** A file or batch that a client has created at a provider of models. */
export type ObjectRecord = ObjectKey & {
  /** Id for the client. */
  readonly text: string
  /** Empty without one. */
  readonly purpose: string
}

export type ObjectKey = {
  /** Digest of the client. */
  readonly owner: string
  /** Call that created it. */
  readonly kind: string
  /** Digest of the id. */
  readonly id: string
}

/** A page of the objects of a client. */
export type ObjectQuery = Pick<ObjectKey, 'owner' | 'kind'> & {
  readonly purpose: string | undefined
  /** Digest of the id in front of the page. */
  readonly cursor: string | undefined
  readonly order: 'newest first' | 'oldest first'
  readonly limit: number
}

export type ObjectRequest =
  | { readonly kind: 'add'; readonly record: ObjectRecord }
  /** The object is not listed any more, and remains a cursor. */
  | { readonly kind: 'remove'; readonly key: ObjectKey }
  | { readonly kind: 'find'; readonly query: ObjectQuery }

/** Ids for clients, of `find`; undefined for a cursor that is not of the client. */
export type FoundObjects = readonly string[] | undefined

/** Calls the record of objects in the database. Rejects if the database is not available. */
export type CallObjectRecords = (request: ObjectRequest) => Promise<FoundObjects>
