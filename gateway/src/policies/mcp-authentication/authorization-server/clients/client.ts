/** Client of the authorization endpoint. All are public clients: PKCE, no secret. */
export type Client = {
  id: string
  /** Unverified name of the client. */
  name: string | undefined
  redirectUris: readonly string[]
  /** Host of the client's metadata document; undefined for a registered client. */
  publisher: string | undefined
}

export type ClientLookup =
  | { kind: 'client'; client: Client }
  | { kind: 'unknown'; reason: string }
  /** Too many concurrent fetches. */
  | { kind: 'unavailable' }
