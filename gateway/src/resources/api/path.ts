import { parseRequestTarget } from '../../lib/request-target.ts'
import { isHistoryId } from '../history/history-query.ts'

/** Target of a request under `/api/config`. */
export type ApiPath =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'malformed'; readonly message: string }
  | {
      readonly kind: 'document'
      readonly name: 'status' | 'schema' | 'effective' | 'openapi'
      readonly query: string
    }
  | { readonly kind: 'file'; readonly query: string }
  | { readonly kind: 'kindSchema'; readonly kindName: string; readonly query: string }
  | { readonly kind: 'all'; readonly query: string }
  | { readonly kind: 'history'; readonly query: string }
  /** `id` is undefined if the address has none that can exist. */
  | { readonly kind: 'recordedChange'; readonly id: number | undefined; readonly query: string }
  | { readonly kind: 'revert'; readonly id: number | undefined; readonly query: string }
  | { readonly kind: 'collection'; readonly kindName: string; readonly query: string }
  | { readonly kind: 'item'; readonly kindName: string; readonly id: string; readonly query: string }

const documents = new Map([
  ['/api/config/status', 'status'],
  ['/api/config/schema', 'schema'],
  ['/api/config/effective', 'effective'],
  ['/api/config/openapi.json', 'openapi'],
] as const)

const resourcesPath = '/api/config/resources'
const filePath = '/api/config/file'
const schemaPath = '/api/config/schema'
const historyPath = '/api/config/history'

/** Reads a request target. Ids may contain any character, slashes included, escaped or not. */
export function readRequestTarget(target: string): ApiPath {
  const parsed = parseRequestTarget(target)
  if (parsed === undefined) return { kind: 'malformed', message: 'the address is malformed' }
  const { path, query, trailingSlash } = parsed
  for (const [known, name] of documents) if (path === known) return { kind: 'document', name, query }
  if (path === filePath) return { kind: 'file', query }
  if (path.startsWith(`${schemaPath}/`)) {
    const kindName = decoded(path.slice(schemaPath.length + 1))
    return kindName === undefined
      ? { kind: 'malformed', message: 'the address contains escapes that are not valid UTF-8' }
      : { kind: 'kindSchema', kindName, query }
  }
  if (path === historyPath || path.startsWith(`${historyPath}/`)) return readHistoryPath(path, query)
  if (path === resourcesPath) return { kind: 'all', query }
  if (!path.startsWith(`${resourcesPath}/`)) return { kind: 'unknown' }
  const [kindPart = '', ...idParts] = path.slice(resourcesPath.length + 1).split('/')
  const kindName = decoded(kindPart)
  const id = idParts.length === 0 ? undefined : decoded(idParts.join('/'))
  if (kindName === undefined || (idParts.length > 0 && id === undefined)) {
    return { kind: 'malformed', message: 'the address contains escapes that are not valid UTF-8' }
  }
  if (id !== undefined) return { kind: 'item', kindName, id, query }
  // A client with an empty id sends the slash alone.
  if (trailingSlash) return { kind: 'malformed', message: 'config resource id cannot be empty' }
  return { kind: 'collection', kindName, query }
}

function readHistoryPath(path: string, query: string): ApiPath {
  const [id, action, ...others] = path.slice(historyPath.length + 1).split('/')
  if (id === undefined || id === '') return { kind: 'history', query }
  if (others.length > 0 || (action !== undefined && action !== 'revert')) return { kind: 'unknown' }
  const number = isHistoryId(id) ? Number(id) : undefined
  return { kind: action === undefined ? 'recordedChange' : 'revert', id: number, query }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
