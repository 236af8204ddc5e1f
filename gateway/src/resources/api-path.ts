import { parseRequestTarget } from '../lib/request-target.ts'

/** What a path under `/api/config` means. */
export type ApiPath =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'malformed'; readonly message: string }
  | { readonly kind: 'document'; readonly name: 'status' | 'schema' | 'effective' | 'openapi' }
  | { readonly kind: 'all' }
  | { readonly kind: 'collection'; readonly kindName: string; readonly dryRun: boolean }
  | { readonly kind: 'item'; readonly kindName: string; readonly id: string; readonly dryRun: boolean }

const documents = new Map([
  ['/api/config/status', 'status'],
  ['/api/config/schema', 'schema'],
  ['/api/config/effective', 'effective'],
  ['/api/config/openapi.json', 'openapi'],
] as const)

const resourcesPath = '/api/config/resources'

/** Ids may hold anything, slashes included, written as they are or escaped. */
export function readRequestTarget(target: string): ApiPath {
  const parsed = parseRequestTarget(target)
  if (parsed === undefined) return { kind: 'malformed', message: 'the address is malformed' }
  const { path, query, trailingSlash } = parsed
  for (const [known, name] of documents) if (path === known) return { kind: 'document', name }
  if (path === resourcesPath) return { kind: 'all' }
  if (!path.startsWith(`${resourcesPath}/`)) return { kind: 'unknown' }
  const dryRun = readDryRun(query)
  if (dryRun === undefined) return { kind: 'malformed', message: 'dryRun must be true or false' }
  const [kindPart = '', ...idParts] = path.slice(resourcesPath.length + 1).split('/')
  const kindName = decoded(kindPart)
  const id = idParts.length === 0 ? undefined : decoded(idParts.join('/'))
  if (kindName === undefined || (idParts.length > 0 && id === undefined)) {
    return { kind: 'malformed', message: 'the address holds escapes that are not valid UTF-8' }
  }
  if (id !== undefined) return { kind: 'item', kindName, id, dryRun }
  // What a client writes that has put an empty id behind the slash.
  if (trailingSlash) return { kind: 'malformed', message: 'config resource id cannot be empty' }
  return { kind: 'collection', kindName, dryRun }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function readDryRun(query: string): boolean | undefined {
  const values = new URLSearchParams(query).getAll('dryRun')
  const [value] = values
  if (value === undefined) return false
  if (values.length > 1) return undefined
  return value === 'true' ? true : value === 'false' ? false : undefined
}
