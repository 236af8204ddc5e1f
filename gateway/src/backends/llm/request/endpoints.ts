import type { ErrorFormat, LlmOperation, RequestFacts } from '../../../pipeline/exchange.ts'

/** The API calls that are known, by what they ask for. */
export type Endpoint = 'chat' | 'completions' | 'embeddings' | 'responses' | 'messages' | 'count_tokens'

/** What a path asks for. */
export type EndpointMatch =
  | { readonly kind: 'endpoint'; readonly endpoint: Endpoint }
  /** `id` is undefined for the whole list. */
  | { readonly kind: 'models'; readonly id: string | undefined }
  /** Forwarded as it is: the configuration says that such paths may be. */
  | { readonly kind: 'passthrough' }
  | { readonly kind: 'unknown' }

/** The operation of each call, for rules: paths have many spellings. */
export const operations: Readonly<Record<Endpoint | 'models' | 'passthrough', LlmOperation>> = {
  chat: { operation: 'chat', api: 'chat_completions' },
  completions: { operation: 'text_completion', api: 'completions' },
  embeddings: { operation: 'embeddings', api: 'embeddings' },
  responses: { operation: 'chat', api: 'responses' },
  messages: { operation: 'chat', api: 'messages' },
  count_tokens: { operation: 'count_tokens', api: 'count_tokens' },
  models: { operation: 'list_models', api: 'models' },
  passthrough: { operation: 'passthrough', api: 'passthrough' },
}

/** How requests are read: what their paths ask for, and the shape of what refuses them. Called once per request. */
export type Endpoints = {
  match(path: string): EndpointMatch
  errorFormat(request: Pick<RequestFacts, 'path' | 'headers'>): ErrorFormat
}

const unknown: EndpointMatch = { kind: 'unknown' }
const passthrough: EndpointMatch = { kind: 'passthrough' }

/** The known calls at their usual paths; `passesUnknown`: paths that are no known call are forwarded. */
export function defaultEndpoints(passesUnknown: boolean): Endpoints {
  if (!passesUnknown) return { match: matchEndpoint, errorFormat: errorFormatOf }
  return {
    match(path) {
      const match = matchEndpoint(path)
      if (match.kind !== 'unknown') return match
      return isDisguisedEndpoint(path) ? match : passthrough
    },
    errorFormat: errorFormatOf,
  }
}

/** What paths may be said to ask for (`policies.ai.routes`), and how it is called inside. */
export const routeTypes = {
  completions: { kind: 'endpoint', endpoint: 'chat' },
  messages: { kind: 'endpoint', endpoint: 'messages' },
  responses: { kind: 'endpoint', endpoint: 'responses' },
  embeddings: { kind: 'endpoint', endpoint: 'embeddings' },
  anthropicTokenCount: { kind: 'endpoint', endpoint: 'count_tokens' },
  models: { kind: 'models', id: undefined },
  passthrough,
} satisfies Record<string, EndpointMatch>

export type RouteType = keyof typeof routeTypes

/** Calls at paths of the configuration's choice: each suffix says what the paths that end in it ask for. */
export function endpointsBySuffix(routes: Readonly<Record<string, RouteType>>): Endpoints {
  const { '*': rest = 'completions', ...named } = routes
  const suffixes = Object.entries(named)
    .map(([suffix, type]) => ({ suffix, match: routeTypes[type], inside: `${suffix}/` }))
    .sort((one, other) => other.suffix.length - one.suffix.length)
  const fallback = routeTypes[rest]
  const recognised = suffixes.flatMap(({ suffix, match }) =>
    match.kind === 'passthrough' ? [] : suffix.toLowerCase(),
  )

  function matchSuffix(path: string): EndpointMatch | undefined {
    for (const { suffix, match, inside } of suffixes) {
      if (path.endsWith(suffix)) return match
      if (match.kind !== 'models') continue
      const start = path.lastIndexOf(inside)
      if (start !== -1) return { kind: 'models', id: decodePercent(path.slice(start + inside.length)) }
    }
    return undefined
  }

  function match(path: string): EndpointMatch {
    const found = matchSuffix(path)
    if (found) return found
    if (fallback.kind !== 'passthrough' || recognised.length === 0) return fallback
    // What is forwarded unread must not be a call that is read, in other letters.
    const plain = canonicalPath(path)
    return recognised.some((suffix) => plain.endsWith(suffix)) ? unknown : fallback
  }

  return {
    match,
    errorFormat({ path, headers }) {
      const found = match(path)
      if (found.kind === 'endpoint') return formatOf(found.endpoint)
      return headers['anthropic-version'] === undefined ? 'openai' : 'anthropic'
    },
  }
}

function formatOf(endpoint: Endpoint): ErrorFormat {
  return endpoint === 'messages' || endpoint === 'count_tokens' ? 'anthropic' : 'openai'
}

const endpointPaths: ReadonlyMap<string, EndpointMatch> = new Map([
  ['/chat/completions', { kind: 'endpoint', endpoint: 'chat' }],
  ['/completions', { kind: 'endpoint', endpoint: 'completions' }],
  ['/embeddings', { kind: 'endpoint', endpoint: 'embeddings' }],
  ['/responses', { kind: 'endpoint', endpoint: 'responses' }],
  ['/messages', { kind: 'endpoint', endpoint: 'messages' }],
  ['/messages/count_tokens', { kind: 'endpoint', endpoint: 'count_tokens' }],
  ['/models', { kind: 'models', id: undefined }],
] satisfies [string, EndpointMatch][])

const modelPrefix = '/models/'

/**
 * Matches the part of a normalised path from its last `/v1/` on, whatever stands before it. Without any `/v1/` the whole
 * path has to match, since clients differ in whether their base address includes the version.
 */
export function matchEndpoint(path: string): EndpointMatch {
  const rest = pathAfterVersion(path)
  const match = endpointPaths.get(rest)
  if (match) return match
  return rest.startsWith(modelPrefix)
    ? { kind: 'models', id: decodePercent(rest.slice(modelPrefix.length)) }
    : unknown
}

/**
 * Whether a path nobody knows is a known call in other letters: `/v1/chat%2Fcompletions`, `/v1/Chat/completions`,
 * `/v1/chat/completions;x`. A provider might answer it all the same, without the checks and counts of that call.
 */
export function isDisguisedEndpoint(path: string): boolean {
  return matchEndpoint(canonicalPath(path)).kind !== 'unknown'
}

/** A path as a lenient server may read it. */
function canonicalPath(path: string): string {
  // Some servers decode twice, and take what is behind an encoded mark or a NUL for no part of the path.
  const [plainPath = ''] = decodePercent(decodePercent(path))
    .toLowerCase()
    .split(/[?#\0]/)
  const plain = plainPath.split(/[/\\]/).map((segment) => segment.replace(/;.*$/s, '').trim())
  return `/${plain.filter((segment) => segment !== '' && segment !== '.').join('/')}`
}

/** The path behind its version segment: `/chat/completions` of `/team-a/v1/chat/completions`. */
export function pathAfterVersion(path: string): string {
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

function decodePercent(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
