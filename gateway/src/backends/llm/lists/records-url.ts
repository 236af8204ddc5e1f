type Database = { readonly url?: string | undefined }

type DatabaseSettings = {
  readonly database?: Database | undefined
  readonly logging?: { readonly database?: Database | undefined } | undefined
}

/** Address of the database with the objects of clients; undefined without one. */
export function recordsUrlOf({ database, logging }: DatabaseSettings): string | undefined {
  return database?.url ?? logging?.database?.url
}
