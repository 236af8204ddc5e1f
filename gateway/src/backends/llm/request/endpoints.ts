import type { ErrorFormat, LlmOperation, RequestFacts } from '../../../pipeline/exchange.ts'

/** The API calls that are known, by what they ask for. */
export type Endpoint = 'chat' | 'completions' | 'embeddings' | 'responses' | 'messages' | 'count_tokens'

/** What a path asks for. */
export type Asked =
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
  ask(path: string): Asked
  errorFormat(request: Pick<RequestFacts, 'path' | 'headers'>): ErrorFormat
}

const unknown: Asked = { kind: 'unknown' }
const passthrough: Asked = { kind: 'passthrough' }

/** The known calls at their usual paths; `passesUnknown`: paths that are no known call are forwarded. */
export function usualEndpoints(passesUnknown: boolean): Endpoints {
  if (!passesUnknown) return { ask: matchEndpoint, errorFormat: errorFormatOf }
  return {
    ask(path) {
      const asked = matchEndpoint(path)
      if (asked.kind !== 'unknown') return asked
      return isDisguisedEndpoint(path) ? asked : passthrough
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
} satisfies Record<string, Asked>

export type RouteType = keyof typeof routeTypes

/** Calls at paths of the configuration's choice: each suffix says what the paths that end in it ask for. */
export function endpointsBySuffix(routes: Readonly<Record<string, RouteType>>): Endpoints {
  const { '*': rest = 'completions', ...named } = routes
  const suffixes = Object.entries(named)
    .map(([suffix, type]) => ({ suffix, asked: routeTypes[type], inside: `${suffix}/` }))
    .sort((one, other) => other.suffix.length - one.suffix.length)
  const otherwise = routeTypes[rest]
  const readAs = suffixes.flatMap(({ suffix, asked }) =>
    asked.kind === 'passthrough' ? [] : suffix.toLowerCase(),
  )

  function askedByName(path: string): Asked | undefined {
    for (const { suffix, asked, inside } of suffixes) {
      if (path.endsWith(suffix)) return asked
      if (asked.kind !== 'models') continue
      const start = path.lastIndexOf(inside)
      if (start !== -1) return { kind: 'models', id: decoded(path.slice(start + inside.length)) }
    }
    return undefined
  }

  function ask(path: string): Asked {
    const asked = askedByName(path)
    if (asked) return asked
    if (otherwise.kind !== 'passthrough' || readAs.length === 0) return otherwise
    // What is forwarded unread must not be a call that is read, in other letters.
    const plain = plainSpelling(path)
    return readAs.some((suffix) => plain.endsWith(suffix)) ? unknown : otherwise
  }

  return {
    ask,
    errorFormat({ path, headers }) {
      const asked = ask(path)
      if (asked.kind === 'endpoint') return formatOf(asked.endpoint)
      return headers['anthropic-version'] === undefined ? 'openai' : 'anthropic'
    },
  }
}

function formatOf(endpoint: Endpoint): ErrorFormat {
  return endpoint === 'messages' || endpoint === 'count_tokens' ? 'anthropic' : 'openai'
}

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
  return matchEndpoint(plainSpelling(path)).kind !== 'unknown'
}

/** A path as a lenient server may read it. */
function plainSpelling(path: string): string {
  // Some servers decode twice, and take what is behind an encoded mark or a NUL for no part of the path.
  const [plainPath = ''] = decoded(decoded(path))
    .toLowerCase()
    .split(/[?#\0]/)
  const plain = plainPath.split(/[/\\]/).map((segment) => segment.replace(/;.*$/s, '').trim())
  return `/${plain.filter((segment) => segment !== '' && segment !== '.').join('/')}`
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
