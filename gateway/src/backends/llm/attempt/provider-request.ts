import { editBytes, editTopLevel, memberText } from '../../../lib/json/edit.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import { writeJsonSteps } from '../../../lib/json/write.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { createHeaderFilter, firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { OutgoingRequest } from '../../../net/http-client/send.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { isWithheldHeader } from '../../../upstream/withheld-headers.ts'
import type { Candidate } from '../models/models.ts'
import type { Target } from '../models/target.ts'
import type { Call } from '../request/call.ts'
import { type Endpoint, pathAfterVersion } from '../request/endpoints.ts'
import { chatToMessages } from '../translate/chat-to-messages/chat-to-messages.ts'
import { parseExactObject, readExactObject } from '../translate/exact-json.ts'
import { messagesToChat } from '../translate/messages-to-chat/messages-to-chat.ts'
import type { Translation } from '../translate/translate.ts'

/**
 * The request to one provider, and the translation of its response, if any. The credential is added before
 * sending.
 */
export type PreparedRequest =
  | { kind: 'request'; request: OutgoingRequest; translation: Translation | undefined }
  | Refused

export type PrepareOptions = { timeLimits: TimeLimits; workQueue: WorkQueue }

export type TimeLimits = { firstByteTimeoutMs: number | undefined; idleTimeoutMs: number | undefined }

type Refused = { kind: 'refused'; refusal: Refusal }

/** Builds the request to one candidate; asynchronous for large bodies that are translated. */
export function prepareRequest(
  exchange: Exchange,
  call: Call,
  candidate: Candidate,
  { timeLimits, workQueue }: PrepareOptions,
): PreparedRequest | Promise<PreparedRequest> {
  const route = routeTo(call, requestPath(exchange), candidate)
  if (route.kind === 'refused') return route
  const request = outgoingRequest(exchange, call, candidate, route.path)
  if (timeLimits.firstByteTimeoutMs !== undefined) request.firstByteTimeoutMs = timeLimits.firstByteTimeoutMs
  if (timeLimits.idleTimeoutMs !== undefined) request.idleTimeoutMs = timeLimits.idleTimeoutMs
  const body = requestBody(call, candidate, route.translation, workQueue)
  return body instanceof Promise
    ? body.then((built) => withBody(request, built, route.translation))
    : withBody(request, body, route.translation)
}

/** The request without its body. */
function outgoingRequest(
  exchange: Exchange,
  call: Call,
  candidate: Candidate,
  path: string,
): OutgoingRequest {
  const { facts, cancellation } = exchange
  return {
    origin: candidate.target.origin,
    path: path + facts.request.query,
    method: facts.request.method,
    headers: headersFor(clientHeaders(exchange), call, candidate),
    body: undefined,
    cancellation,
    connection: candidate.target.connection,
  }
}

function withBody(
  request: OutgoingRequest,
  built: RequestBody,
  translation: Translation | undefined,
): PreparedRequest {
  if (built.kind === 'refused') return built
  request.body = built.body
  return { kind: 'request', request, translation }
}

/** The request path after rewrites by policies. */
export function requestPath({ facts, forwarding }: Exchange): string {
  return forwarding?.path ?? facts.request.path
}

/** The client's headers after edits by policies. */
export function clientHeaders({ facts, forwarding }: Exchange): Headers {
  const { headers } = facts.request
  if (forwarding === undefined || forwarding.headerEdits.length === 0) return headers
  const edited = { ...headers }
  for (const edit of forwarding.headerEdits) edit(edited)
  return edited
}

/** `path` is the path at the upstream, without query. */
type ProviderRoute = { kind: 'route'; path: string; translation: Translation | undefined }

/**
 * Selects the provider's path: of the same endpoint if it has one, else of the endpoint after translation.
 */
function routeTo(call: Call, path: string, { target }: Candidate): ProviderRoute | Refused {
  const { endpoint } = call
  const { paths, name } = target.provider
  if (endpoint === 'passthrough') {
    return { kind: 'route', path: passthroughPath(path, target), translation: undefined }
  }
  const to = (own: string) => target.fixedPath ?? target.basePath + own
  const same = paths[endpoint]
  if (same !== undefined) return { kind: 'route', path: to(same), translation: undefined }
  if (endpoint === 'chat' && paths.messages !== undefined) {
    return { kind: 'route', path: to(paths.messages), translation: chatToMessages }
  }
  if (endpoint === 'messages' && paths.chat !== undefined) {
    return { kind: 'route', path: to(paths.chat), translation: messagesToChat }
  }
  const message = `provider ${name} of model "${target.configuredModel}" does not offer ${endpointLabels[endpoint]}`
  return { kind: 'refused', refusal: { status: 400, code: 'unsupported_endpoint', message } }
}

const endpointLabels: Record<Endpoint, string> = {
  chat: 'chat completions',
  completions: 'completions',
  embeddings: 'embeddings',
  responses: 'responses',
  messages: 'messages',
  count_tokens: 'token counting',
}

type RequestBody = { kind: 'body'; body: Uint8Array | string | undefined } | Refused

function requestBody(
  call: Call,
  candidate: Candidate,
  translation: Translation | undefined,
  workQueue: WorkQueue,
): RequestBody | Promise<RequestBody> {
  const { json, bytes } = call
  if (json === undefined) return { kind: 'body', body: bytes.length > 0 ? bytes : undefined }
  if (translation) {
    if (json.large) return translateLarge(json, candidate, translation, workQueue)
    // Parsed again, because the input of a tool call may contain numbers that `JSON.parse` rounds.
    const translated = translateRequest(parseExactObject(json.text) ?? json.value, candidate, translation)
    if (translated.kind === 'refused') return translated
    return { kind: 'body', body: JSON.stringify(translated.value) }
  }
  const edits = editsFor(json, call, candidate)
  return { kind: 'body', body: edits ? editBytes(json, edits) : bytes }
}

type Edits = { set: Map<string, string>; remove: Set<string> }

/**
 * Edits of a body that needs no translation, or undefined for none: the model, then overrides, then defaults
 * for absent fields, then fields that the provider and the usage count need.
 */
function editsFor(json: JsonText, call: Call, { target, model }: Candidate): Edits | undefined {
  const { value } = json
  const set = new Map<string, string>()
  const remove = new Set<string>()
  const named = typeof value['model'] === 'string'
  if (value['model'] !== model && (named || call.endpoint !== 'passthrough'))
    set.set('model', JSON.stringify(model))
  if (call.endpoint === 'passthrough') return set.size > 0 ? { set, remove } : undefined
  for (const [name, text] of target.overrides) set.set(name, text)
  for (const [name, text] of target.defaults) {
    if (!Object.hasOwn(value, name) && !set.has(name)) set.set(name, text)
  }
  requestUsage(json, call, set)
  renameMaxTokens(json, call, { target, model }, { set, remove })
  return set.size > 0 || remove.size > 0 ? { set, remove } : undefined
}

/**
 * Requests the usage of a stream, which OpenAI's older APIs report on request only; every stream is counted.
 */
function requestUsage(json: JsonText, { endpoint }: Call, set: Map<string, string>): void {
  if (endpoint !== 'chat' && endpoint !== 'completions') return
  const streams = set.get('stream') ?? (json.value['stream'] === true ? 'true' : 'false')
  if (streams !== 'true') return
  const text = set.get('stream_options') ?? memberText(json, 'stream_options')
  const options = text === undefined ? undefined : readJsonObject(text)
  if (options?.kind !== 'object') set.set('stream_options', '{"include_usage":true}')
  else if (options.value['include_usage'] !== true) {
    set.set('stream_options', editTopLevel(options, { set: includeUsage }))
  }
}

const includeUsage: ReadonlyMap<string, string> = new Map([['include_usage', 'true']])

function renameMaxTokens(
  json: JsonText,
  { endpoint }: Call,
  { target, model }: Candidate,
  { set, remove }: Edits,
): void {
  if (endpoint !== 'chat' || !target.provider.renamesMaxTokens?.(model)) return
  const text = set.get('max_tokens') ?? memberText(json, 'max_tokens')
  if (text === undefined) return
  const newer = set.has('max_completion_tokens') || Object.hasOwn(json.value, 'max_completion_tokens')
  if (!newer) set.set('max_completion_tokens', text)
  set.delete('max_tokens')
  remove.add('max_tokens')
}

/** `translateRequest` in slices of time. */
async function translateLarge(
  json: JsonText,
  candidate: Candidate,
  translation: Translation,
  workQueue: WorkQueue,
): Promise<RequestBody> {
  const value = json.large && (await readExactObject(json.large.bytes, workQueue))
  const translated = translateRequest(value ?? json.value, candidate, translation)
  if (translated.kind === 'refused') return translated
  return { kind: 'body', body: await workQueue.run(writeJsonSteps(translated.value)) }
}

function translateRequest(
  value: JsonObject,
  { target, model }: Candidate,
  translation: Translation,
): { kind: 'object'; value: JsonObject } | Refused {
  const edited: JsonObject = { ...value, model }
  for (const [name, text] of target.overrides) edited[name] = JSON.parse(text)
  for (const [name, text] of target.defaults)
    if (!Object.hasOwn(edited, name)) edited[name] = JSON.parse(text)
  const translated = translation.request(edited)
  if (translated.kind === 'unsupported') {
    const { param, message } = translated
    return { kind: 'refused', refusal: { status: 400, code: 'unsupported_parameter', message, param } }
  }
  const { body } = translated
  if (target.provider.paths.chat !== undefined) {
    const { max_tokens: maxTokens, ...rest } = body
    if (maxTokens !== undefined && target.provider.renamesMaxTokens?.(model)) {
      return { kind: 'object', value: { ...rest, max_completion_tokens: maxTokens } }
    }
  }
  return { kind: 'object', value: body }
}

function headersFor(client: Headers, call: Call, { target }: Candidate): Headers {
  const headers = filterHeaders(client)
  // Parameters of the client's media type are not forwarded: a server that applies a charset would decode
  // another text.
  if (call.json !== undefined) headers['content-type'] = 'application/json'
  target.editHeaders?.(headers)
  // Bodies are read for usage and by guards, so a content coding would only be removed again.
  headers['accept-encoding'] = 'identity'
  const { defaultHeaders } = target.provider
  for (const name in defaultHeaders) headers[name] ??= defaultHeaders[name] ?? ''
  return headers
}

/**
 * The upstream path of a passthrough call: the client's path, or its part after the version. The version is
 * added if the provider's address lacks it.
 */
function passthroughPath(path: string, { provider, basePath, preservesPath }: Target): string {
  if (preservesPath) return path
  const versioned = Object.values(provider.paths).every((known) => known?.startsWith('/v1/'))
  const rest = pathAfterVersion(path)
  return versioned ? `${basePath}/v1${rest}` : basePath + rest
}

/** The client's credential, unless a policy consumed it. */
export function clientCredential(headers: Headers): string | undefined {
  const authorization = firstHeader(headers, 'authorization')
  if (authorization !== undefined && authorization.slice(0, 7).toLowerCase() === 'bearer ') {
    return authorization.slice(7).trim()
  }
  return firstHeader(headers, 'x-api-key')
}

/** Headers about the client or the connection to the gateway, and headers that are set again. */
const withheldNames: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'content-encoding',
  'accept-encoding',
  'authorization',
  'x-api-key',
  'api-key',
  'cookie',
  'via',
  'origin',
  'referer',
  'expect',
])

const filterHeaders = createHeaderFilter(
  (name) =>
    withheldNames.has(name) ||
    isWithheldHeader(name) ||
    name.startsWith('sec-') ||
    name.startsWith('access-control-'),
)
