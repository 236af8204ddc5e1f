import type { ErrorFormat, RequestFacts } from '../../../pipeline/exchange.ts'
import type { LlmOperation } from '../../../pipeline/facts/llm-facts.ts'
import { type ObjectPath, objectAt } from '../batches/object-path.ts'
import { type StoredAction, storedAt } from '../stored/stored-path.ts'
import { bedrockCallIn } from './bedrock-path.ts'
import {
  type GeminiEndpoint,
  geminiCallIn,
  geminiModelsIn,
  isGeminiMethod,
  isGoogleClient,
} from './gemini-path.ts'
import { isVertexMethod, vertexCallIn } from './vertex-path.ts'

/** LLM API calls that the gateway reads from clients. */
export type ClientEndpoint =
  | 'chat'
  | 'completions'
  | 'embeddings'
  | 'responses'
  | 'messages'
  | 'count_tokens'
  | 'moderations'
  | 'rerank'
  | 'rerank_v2'
  | 'embed'
  | 'cohere_chat'
  | 'images'
  | 'image_edits'
  | 'image_variations'
  | 'speech'
  | 'transcriptions'
  | 'translations'
  | GeminiEndpoint
  | 'realtime'
  | 'converse'
  | 'converse_count'
  | 'invoke'
  | 'files'
  | 'batches'
  | 'message_batches'
  | 'anthropic_files'
  | 'uploads'

/**
 * Calls of clients and of upstreams: `predict` of Vertex AI, embeddings and rerankers of Amazon
 * Bedrock serve translated ones.
 */
export type Endpoint =
  | ClientEndpoint
  | 'predict'
  | 'titan_embeddings'
  | 'cohere_embeddings'
  | 'nova_embeddings'
  | 'bedrock_rerank'

/** The call at a path. */
export type EndpointMatch =
  | { readonly kind: 'endpoint'; readonly endpoint: ClientEndpoint }
  /** `id` is undefined for the whole list. */
  | { readonly kind: 'models'; readonly id: string | undefined }
  /** `passes`: ids of the provider are forwarded, as permitted by the configuration. */
  | {
      readonly kind: 'stored'
      readonly id: string
      readonly action: StoredAction
      readonly passes: boolean
    }
  /** A file or batch. `passes`: as for stored responses. */
  | { readonly kind: 'object'; readonly object: ObjectPath; readonly passes: boolean }
  /** Forwarded unchanged, as permitted by the configuration. */
  | { readonly kind: 'passthrough' }
  /** Would open connections that bypass the gateway. */
  | { readonly kind: 'bypass' }
  | { readonly kind: 'unknown' }

/** The operation of each call, for rules, because paths have many spellings. */
export const operations: Readonly<
  Record<ClientEndpoint | 'models' | 'stored' | 'passthrough', LlmOperation>
> = {
  chat: { operation: 'chat', api: 'chat_completions' },
  completions: { operation: 'text_completion', api: 'completions' },
  embeddings: { operation: 'embeddings', api: 'embeddings' },
  responses: { operation: 'chat', api: 'responses' },
  messages: { operation: 'chat', api: 'messages' },
  count_tokens: { operation: 'count_tokens', api: 'count_tokens' },
  moderations: { operation: 'moderation', api: 'moderations' },
  rerank: { operation: 'rerank', api: 'rerank' },
  rerank_v2: { operation: 'rerank', api: 'rerank' },
  embed: { operation: 'embeddings', api: 'embed' },
  cohere_chat: { operation: 'chat', api: 'cohere_chat' },
  images: { operation: 'image_generation', api: 'images_generations' },
  image_edits: { operation: 'image_edit', api: 'images_edits' },
  image_variations: { operation: 'image_variation', api: 'images_variations' },
  speech: { operation: 'speech', api: 'audio_speech' },
  transcriptions: { operation: 'transcription', api: 'audio_transcriptions' },
  translations: { operation: 'translation', api: 'audio_translations' },
  generate_content: { operation: 'chat', api: 'generate_content' },
  gemini_count_tokens: { operation: 'count_tokens', api: 'gemini_count_tokens' },
  embed_content: { operation: 'embeddings', api: 'embed_content' },
  batch_embed_contents: { operation: 'embeddings', api: 'batch_embed_contents' },
  realtime: { operation: 'realtime', api: 'realtime' },
  converse: { operation: 'chat', api: 'converse' },
  converse_count: { operation: 'count_tokens', api: 'bedrock_count_tokens' },
  invoke: { operation: 'invoke_model', api: 'invoke_model' },
  files: { operation: 'file', api: 'files' },
  batches: { operation: 'batch', api: 'batches' },
  message_batches: { operation: 'batch', api: 'message_batches' },
  anthropic_files: { operation: 'file', api: 'anthropic_files' },
  uploads: { operation: 'file', api: 'uploads' },
  models: { operation: 'list_models', api: 'models' },
  stored: { operation: 'stored_response', api: 'responses' },
  passthrough: { operation: 'passthrough', api: 'passthrough' },
}

/** Calls with files, whose requests may be forms. */
export const formEndpoints: ReadonlySet<Endpoint> = new Set([
  'image_edits',
  'image_variations',
  'transcriptions',
  'translations',
])

/** Classification of requests by path: the call, and the shape of errors. Called once per request. */
export type Endpoints = {
  match(path: string): EndpointMatch
  errorFormat(request: Pick<RequestFacts, 'path' | 'headers'>): ErrorFormat
}

const unknown: EndpointMatch = { kind: 'unknown' }
const bypass: EndpointMatch = { kind: 'bypass' }
const passthrough: EndpointMatch = { kind: 'passthrough' }

/** Calls at their default paths; `passesUnknown` forwards unknown paths. */
export function defaultEndpoints(passesUnknown: boolean): Endpoints {
  if (!passesUnknown) return { match: matchEndpoint, errorFormat: errorFormatOf }
  return {
    match(path) {
      const match = matchEndpoint(path)
      if (match.kind === 'stored' || match.kind === 'object') return { ...match, passes: true }
      if (match.kind !== 'unknown') return match
      if (isRealtimeCall(canonicalPath(path))) return bypass
      return isDisguisedEndpoint(path) ? match : passthrough
    },
    errorFormat: errorFormatOf,
  }
}

/** Route types of `policies.ai.routes` and their calls. */
export const routeTypes = {
  completions: { kind: 'endpoint', endpoint: 'chat' },
  messages: { kind: 'endpoint', endpoint: 'messages' },
  responses: { kind: 'endpoint', endpoint: 'responses' },
  embeddings: { kind: 'endpoint', endpoint: 'embeddings' },
  anthropicTokenCount: { kind: 'endpoint', endpoint: 'count_tokens' },
  moderations: { kind: 'endpoint', endpoint: 'moderations' },
  rerank: { kind: 'endpoint', endpoint: 'rerank' },
  embed: { kind: 'endpoint', endpoint: 'embed' },
  cohereChat: { kind: 'endpoint', endpoint: 'cohere_chat' },
  imageGenerations: { kind: 'endpoint', endpoint: 'images' },
  imageEdits: { kind: 'endpoint', endpoint: 'image_edits' },
  imageVariations: { kind: 'endpoint', endpoint: 'image_variations' },
  audioSpeech: { kind: 'endpoint', endpoint: 'speech' },
  audioTranscriptions: { kind: 'endpoint', endpoint: 'transcriptions' },
  audioTranslations: { kind: 'endpoint', endpoint: 'translations' },
  generateContent: { kind: 'endpoint', endpoint: 'generate_content' },
  geminiCountTokens: { kind: 'endpoint', endpoint: 'gemini_count_tokens' },
  realtime: { kind: 'endpoint', endpoint: 'realtime' },
  models: { kind: 'models', id: undefined },
  passthrough,
} satisfies Record<string, EndpointMatch>

export type RouteType = keyof typeof routeTypes

/** Calls at configured paths, by path suffix. */
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
      if (path.endsWith(suffix)) return isSecondRerank(match, path) ? rerankV2 : match
      const isStored = match.kind === 'endpoint' && match.endpoint === 'responses'
      if (match.kind !== 'models' && !isStored) continue
      const start = path.lastIndexOf(inside)
      if (start === -1) continue
      const stored = isStored ? storedAt(path.slice(start + inside.length)) : undefined
      if (stored) return { kind: 'stored', ...stored, passes: fallback.kind === 'passthrough' }
      if (match.kind === 'models')
        return { kind: 'models', id: decodePercent(path.slice(start + inside.length)) }
    }
    return undefined
  }

  function match(path: string): EndpointMatch {
    const found = matchSuffix(path)
    if (found !== undefined && found.kind !== 'passthrough') return found
    const inPath = cloudCallIn(path)
    if (inPath) return inPath
    const plain = found ?? fallback
    // A path that is forwarded unread must not be another spelling of a call that is read.
    return plain.kind === 'passthrough' && isDisguised(canonicalPath(path), found) ? unknown : plain
  }

  function isDisguised(plain: string, found: EndpointMatch | undefined): boolean {
    if (bedrockCallIn(plain) !== undefined || isVertexMethod(plain)) return true
    return found === undefined && recognised.some((suffix) => plain.endsWith(suffix))
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

function formatOf(endpoint: ClientEndpoint): ErrorFormat {
  switch (endpoint) {
    case 'messages':
    case 'count_tokens':
      return 'anthropic'
    case 'rerank':
    case 'rerank_v2':
    case 'embed':
    case 'cohere_chat':
      return 'cohere'
    case 'generate_content':
    case 'gemini_count_tokens':
    case 'embed_content':
    case 'batch_embed_contents':
      return 'google'
    case 'converse':
    case 'converse_count':
    case 'invoke':
      return 'aws'
    default:
      return 'openai'
  }
}

const rerankV2: EndpointMatch = { kind: 'endpoint', endpoint: 'rerank_v2' }
const rerankV2Path = '/v2/rerank'
const embedPath = '/v2/embed'
const cohereChatPath = '/v2/chat'

/** Both versions of the call have the same suffix. */
function isSecondRerank(match: EndpointMatch, path: string): boolean {
  return match.kind === 'endpoint' && match.endpoint === 'rerank' && path.endsWith(rerankV2Path)
}

const endpointPaths: ReadonlyMap<string, EndpointMatch> = new Map([
  ['/chat/completions', { kind: 'endpoint', endpoint: 'chat' }],
  ['/completions', { kind: 'endpoint', endpoint: 'completions' }],
  ['/embeddings', { kind: 'endpoint', endpoint: 'embeddings' }],
  ['/responses', { kind: 'endpoint', endpoint: 'responses' }],
  ['/messages', { kind: 'endpoint', endpoint: 'messages' }],
  ['/messages/count_tokens', { kind: 'endpoint', endpoint: 'count_tokens' }],
  ['/moderations', { kind: 'endpoint', endpoint: 'moderations' }],
  ['/rerank', { kind: 'endpoint', endpoint: 'rerank' }],
  ['/images/generations', { kind: 'endpoint', endpoint: 'images' }],
  ['/images/edits', { kind: 'endpoint', endpoint: 'image_edits' }],
  ['/images/variations', { kind: 'endpoint', endpoint: 'image_variations' }],
  ['/audio/speech', { kind: 'endpoint', endpoint: 'speech' }],
  ['/audio/transcriptions', { kind: 'endpoint', endpoint: 'transcriptions' }],
  ['/audio/translations', { kind: 'endpoint', endpoint: 'translations' }],
  ['/realtime', { kind: 'endpoint', endpoint: 'realtime' }],
  // Paths of Azure's SDKs.
  ['/openai/realtime', { kind: 'endpoint', endpoint: 'realtime' }],
  ['/models', { kind: 'models', id: undefined }],
] satisfies [string, EndpointMatch][])

const modelPrefix = '/models/'
const responsePrefix = '/responses/'

/**
 * Matches the part of a normalised path after its last `/v1/`, with any prefix. A path without `/v1/` is
 * matched completely, because not all clients include the version in their base address.
 */
export function matchEndpoint(path: string): EndpointMatch {
  const rest = pathAfterVersion(path)
  const match = endpointPaths.get(rest)
  if (match) return match
  const gemini = geminiCallIn(path)
  if (gemini) return { kind: 'endpoint', endpoint: gemini.endpoint }
  const models = geminiModelsIn(path)
  if (models) return { kind: 'models', id: models.id }
  const cloud = cloudCallIn(path)
  if (cloud) return cloud
  if (rest.startsWith(modelPrefix))
    return { kind: 'models', id: decodePercent(rest.slice(modelPrefix.length)) }
  const stored = rest.startsWith(responsePrefix) ? storedAt(rest.slice(responsePrefix.length)) : undefined
  if (stored) return { kind: 'stored', ...stored, passes: false }
  if (path.endsWith(embedPath)) return { kind: 'endpoint', endpoint: 'embed' }
  if (path.endsWith(cohereChatPath)) return { kind: 'endpoint', endpoint: 'cohere_chat' }
  const object = objectAt(rest)
  if (object) return { kind: 'object', object, passes: false }
  if (path.endsWith(rerankV2Path)) return rerankV2
  return isRealtimeCall(rest) ? bypass : unknown
}

/**
 * Ephemeral keys of the provider, and calls over WebRTC or SIP: their media and events would not pass through
 * the gateway.
 */
function isRealtimeCall(path: string): boolean {
  return /\/realtime\/(?:client_secrets|calls|sessions|transcription_sessions|translations)(?:\/|$)/.test(
    path,
  )
}

/** Calls of clouds with the model in the path. They are read at every backend, whatever its routes are. */
function cloudCallIn(path: string): EndpointMatch | undefined {
  const call = bedrockCallIn(path) ?? vertexCallIn(path)
  return call && { kind: 'endpoint', endpoint: call.endpoint }
}

/**
 * True if an unknown path is another spelling of a known call: `/v1/chat%2Fcompletions`,
 * `/v1/Chat/completions`, `/v1/chat/completions;x`. A provider might serve it without the checks and counts
 * of that call.
 */
export function isDisguisedEndpoint(path: string): boolean {
  const plain = canonicalPath(path)
  return matchEndpoint(plain).kind !== 'unknown' || isGeminiMethod(plain) || isVertexMethod(plain)
}

/** The interpretation of a path by a lenient server. */
export function canonicalPath(path: string): string {
  // Some servers decode twice, and end the path at an encoded `?` or `#` or at NUL.
  const [plainPath = ''] = decodePercent(decodePercent(path))
    .toLowerCase()
    .split(/[?#\0]/)
  const plain = plainPath.split(/[/\\]/).map((segment) => segment.replace(/;.*$/s, '').trim())
  return `/${plain.filter((segment) => segment !== '' && segment !== '.').join('/')}`
}

/**
 * The path after its version segment: `/chat/completions` for `/team-a/v1/chat/completions`, and for
 * `/openai/deployments/gpt/chat/completions` of Azure's SDKs.
 */
export function pathAfterVersion(path: string): string {
  const models = path.lastIndexOf('/v1/models/')
  const version = models === -1 ? path.lastIndexOf('/v1/') : models
  if (version !== -1) return path.slice(version + 3)
  return deploymentIn(path)?.rest ?? path
}

const deploymentPrefix = '/openai/deployments/'

/** Model and call of a path of Azure OpenAI; undefined for other paths. */
export function deploymentIn(path: string): { model: string; rest: string } | undefined {
  const prefix = path.lastIndexOf(deploymentPrefix)
  if (prefix === -1) return undefined
  const start = prefix + deploymentPrefix.length
  const end = path.indexOf('/', start)
  return end > start ? { model: decodePercent(path.slice(start, end)), rest: path.slice(end) } : undefined
}

/**
 * The error shape of the client's API, from the path or, for paths of both or neither API, from the headers.
 */
export function errorFormatOf({ path, headers }: Pick<RequestFacts, 'path' | 'headers'>): ErrorFormat {
  if (path.endsWith('/messages') || path.endsWith('/messages/count_tokens')) return 'anthropic'
  if (path.includes('/messages/batches')) return 'anthropic'
  if (path.endsWith('/rerank') || path.endsWith(embedPath) || path.endsWith(cohereChatPath)) return 'cohere'
  if (geminiCallIn(path) ?? geminiModelsIn(path)) return 'google'
  if (isGoogleClient(headers) && matchEndpoint(path).kind === 'models') return 'google'
  if (bedrockCallIn(path)) return 'aws'
  if (vertexCallIn(path)) return 'anthropic'
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
