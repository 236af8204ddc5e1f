/** A client of the gateway's authorization endpoint. All are public clients: PKCE, no secret. */
export type Client = {
  id: string
  /** Name as the client states it, which proves nothing. */
  name: string | undefined
  redirectUris: readonly string[]
  /** Host of the client's metadata document; undefined for a client that registered itself. */
  publisher: string | undefined
}

export type ClientLookup =
  | { kind: 'client'; client: Client }
  | { kind: 'unknown'; reason: string }
  /** Too many documents are being fetched. */
  | { kind: 'unavailable' }
