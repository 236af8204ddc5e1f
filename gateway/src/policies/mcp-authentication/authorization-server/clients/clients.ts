import type { JsonObject } from '../../../../lib/json/json.ts'
import type { SealedValues } from '../tokens/sealed-values.ts'
import type { Client, ClientLookup } from './client.ts'
import { type ClientDocuments, isDocumentUrl } from './client-documents.ts'

export type Clients = {
  /** `address`: the address of the browser that the client has sent. */
  find(id: string, address: string): Promise<ClientLookup>
  /** Whether an id is one that `find` may accept, without a fetch. */
  isKnownForm(id: string): boolean
}

export type ClientsOptions = {
  sealed: SealedValues
  /** Undefined where client ID metadata documents are not accepted. */
  documents: ClientDocuments | undefined
  /** Whether the configuration allows a redirect URI, now: a registration may be older. */
  isAllowedRedirect(uri: string): boolean
}

/** Finds clients: the ids of registered ones carry their registration, those of others are addresses of documents. */
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
        ? { kind: 'unknown', reason: 'client_id is not known here' }
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
