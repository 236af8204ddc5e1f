import type { ErrorFormat, RequestFacts } from '../../pipeline/exchange.ts'

/** The API calls that are known, by what they ask for. */
export type Endpoint = 'chat' | 'completions' | 'embeddings' | 'responses' | 'messages' | 'count_tokens'

/** What a path asks for. */
export type Asked =
  | { readonly kind: 'endpoint'; readonly endpoint: Endpoint }
  /** `id` is undefined for the whole list. */
  | { readonly kind: 'models'; readonly id: string | undefined }
  | { readonly kind: 'unknown' }

const unknown: Asked = { kind: 'unknown' }

const paths: ReadonlyMap<string, Asked> = new Map([
  ['/chat/completions', { kind: 'endpoint', endpoint: 'chat' }],
  ['/completions', { kind: 'endpoint', endpoint: 'completions' }],
  ['/embeddings', { kind: 'endpoint', endpoint: 'embeddings' }],
  ['/responses', { kind: 'endpoint', endpoint: 'responses' }],
  ['/messages', { kind: 'endpoint', endpoint: 'messages' }],
  ['/messages/count_tokens', { kind: 'endpoint', endpoint: 'count_tokens' }],
  ['/models', { kind: 'models', id: undefined }],
] satisfies [string, Asked][])

const modelPrefix = '/models/'

/**
 * Matches the part of a normalised path from its last `/v1/` on, whatever stands before it. Without any `/v1/` the whole
 * path has to match, since clients differ in whether their base address includes the version.
 */
export function matchEndpoint(path: string): Asked {
  const rest = versionedRest(path)
  const asked = paths.get(rest)
  if (asked) return asked
  return rest.startsWith(modelPrefix)
    ? { kind: 'models', id: decoded(rest.slice(modelPrefix.length)) }
    : unknown
}

/**
 * Whether a path nobody knows is a known call in other letters: `/v1/chat%2Fcompletions`, `/v1/Chat/completions`,
 * `/v1/chat/completions;x`. A provider might answer it all the same, without the checks and counts of that call.
 */
export function isDisguisedEndpoint(path: string): boolean {
  const segments = decoded(path).toLowerCase().split(/[/\\]/)
  const plain = segments.map((segment) => segment.replace(/;.*$/s, '').trim())
  const kept = plain.filter((segment) => segment !== '' && segment !== '.')
  return matchEndpoint(`/${kept.join('/')}`).kind !== 'unknown'
}

/** The path behind its version segment: `/chat/completions` of `/team-a/v1/chat/completions`. */
export function versionedRest(path: string): string {
  const models = path.lastIndexOf('/v1/models/')
  const version = models === -1 ? path.lastIndexOf('/v1/') : models
  return version === -1 ? path : path.slice(version + 3)
}

/** The error shape of the client API that a request belongs to. Paths of both APIs, or of neither, do not tell. */
export function errorFormatOf({ path, headers }: Pick<RequestFacts, 'path' | 'headers'>): ErrorFormat {
  if (path.endsWith('/messages') || path.endsWith('/messages/count_tokens')) return 'anthropic'
  if (headers['anthropic-version'] === undefined) return 'openai'
  return matchEndpoint(path).kind === 'endpoint' ? 'openai' : 'anthropic'
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
