import type { JsonObject } from '../../../../lib/json/json.ts'
import type { SealedValues } from '../tokens/sealed-values.ts'
import type { Client, ClientLookup } from './client.ts'
import { type ClientDocuments, isDocumentUrl } from './client-documents.ts'

export type Clients = {
  /** `address`: address of the browser of the request. */
  find(id: string, address: string): Promise<ClientLookup>
  /** Whether `find` may accept the id; does not fetch. */
  isKnownForm(id: string): boolean
}

export type ClientsOptions = {
  sealed: SealedValues
  /** Undefined if client ID metadata documents are disabled. */
  documents: ClientDocuments | undefined
  /** Whether the current configuration allows a redirect URI: a registration may be older. */
  isAllowedRedirect(uri: string): boolean
}

/** Creates the client lookup: ids contain a sealed registration or are URLs of metadata documents. */
export function createClients({ sealed, documents, isAllowedRedirect }: ClientsOptions): Clients {
  function registered(id: string): Client | undefined {
    const client = readRegistered(id, sealed.unseal('client', id))
    return client && { ...client, redirectUris: client.redirectUris.filter(isAllowedRedirect) }
  }
  return {
    async find(id, address) {
      if (documents !== undefined && isDocumentUrl(id)) return documents.find(id, address)
      const client = registered(id)
      return client === undefined
        ? { kind: 'unknown', reason: 'client_id is unknown' }
        : { kind: 'client', client }
    },
    isKnownForm: (id) => (documents !== undefined && isDocumentUrl(id)) || registered(id) !== undefined,
  }
}

function readRegistered(id: string, value: JsonObject | undefined): Client | undefined {
  if (value === undefined) return undefined
  const { n: name, r: uris } = value
  if (!Array.isArray(uris)) return undefined
  return {
    id,
    name: typeof name === 'string' ? name : undefined,
    redirectUris: uris.filter((uri) => typeof uri === 'string'),
    publisher: undefined,
  }
}
