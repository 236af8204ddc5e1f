import type { JsonObject } from '../../../lib/json/json.ts'
import { editBytes, editTopLevel, type JsonText, memberText, readJsonObject } from '../../../lib/json/text.ts'
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

/** How one provider is asked for a call: the request, and the translation its answer needs, if any. */
export type Prepared =
  | { kind: 'request'; request: OutgoingRequest; translation: Translation | undefined }
  | { kind: 'refused'; refusal: Refusal }

export type PrepareOptions = { timeLimits: TimeLimits; workQueue: WorkQueue }

export type TimeLimits = { firstByteTimeoutMs: number | undefined; idleTimeoutMs: number | undefined }

/** The request for one candidate. The credential is not on it yet. */
export function prepare(
  exchange: Exchange,
  call: Call,
  candidate: Candidate,
  { timeLimits, workQueue }: PrepareOptions,
): Prepared | Promise<Prepared> {
  const route = routeTo(call, requestPath(exchange), candidate)
  if (route.kind === 'refused') return route
  const body = bodyFor(call, candidate, route, workQueue)
  const complete = (made: BodyFor) => completed(exchange, call, candidate, { made, route, timeLimits })
  return body instanceof Promise ? body.then(complete) : complete(body)
}

type Completing = { made: BodyFor; route: RouteTo; timeLimits: TimeLimits }

function completed(
  exchange: Exchange,
  call: Call,
  candidate: Candidate,
  { made: body, route, timeLimits: limits }: Completing,
): Prepared {
  if (typeof body === 'object' && 'refusal' in body) return body
  const { facts, cancellation } = exchange
  const request: OutgoingRequest = {
    origin: candidate.target.origin,
    path: route.path + facts.request.query,
    method: facts.request.method,
    headers: headersFor(clientHeaders(exchange), call, candidate),
    body,
    cancellation,
    connection: candidate.target.connection,
  }
  if (limits.firstByteTimeoutMs !== undefined) request.firstByteTimeoutMs = limits.firstByteTimeoutMs
  if (limits.idleTimeoutMs !== undefined) request.idleTimeoutMs = limits.idleTimeoutMs
  return { kind: 'request', request, translation: route.translation }
}

/** The path that is asked for, as a policy may have rewritten it. */
export function requestPath({ facts, forwarding }: Exchange): string {
  return forwarding?.path ?? facts.request.path
}

/** The client's headers with the changes of policies. */
export function clientHeaders({ facts, forwarding }: Exchange): Headers {
  const { headers } = facts.request
  if (forwarding === undefined || forwarding.headerEdits.length === 0) return headers
  const edited = { ...headers }
  for (const edit of forwarding.headerEdits) edit(edited)
  return edited
}

type RouteTo = {
  kind: 'route'
  /** At the upstream, without query. */
  path: string
  endpoint: Endpoint | 'passthrough'
  translation: Translation | undefined
}

/** The upstream's path: of the same call where the provider offers it, else of the one it can be translated to. */
function routeTo(
  call: Call,
  path: string,
  { target }: Candidate,
): RouteTo | { kind: 'refused'; refusal: Refusal } {
  const { endpoint } = call
  const { paths, name } = target.provider
  if (endpoint === 'passthrough') {
    return { kind: 'route', path: passthroughPath(path, target), endpoint, translation: undefined }
  }
  const to = (own: string) => target.fixedPath ?? target.basePath + own
  const same = paths[endpoint]
  if (same !== undefined) return { kind: 'route', path: to(same), endpoint, translation: undefined }
  if (endpoint === 'chat' && paths.messages !== undefined) {
    return { kind: 'route', path: to(paths.messages), endpoint: 'messages', translation: chatToMessages }
  }
  if (endpoint === 'messages' && paths.chat !== undefined) {
    return { kind: 'route', path: to(paths.chat), endpoint: 'chat', translation: messagesToChat }
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

type BodyFor = Uint8Array | string | undefined | { kind: 'refused'; refusal: Refusal }

function bodyFor(
  call: Call,
  candidate: Candidate,
  route: RouteTo,
  workQueue: WorkQueue,
): BodyFor | Promise<BodyFor> {
  const { json, bytes } = call
  if (json === undefined) return bytes.length > 0 ? bytes : undefined
  // Read again, because the input of a tool call may hold numbers longer than `JSON.parse` keeps.
  if (route.translation) {
    if (json.large) return translatedLarge(json, candidate, route.translation, workQueue)
    const translated = translatedBody(parseExactObject(json.text) ?? json.value, candidate, route.translation)
    return isRefusal(translated) ? translated : JSON.stringify(translated)
  }
  const edits = editsFor(json, call, candidate)
  return edits ? editBytes(json, edits) : bytes
}

type Edits = { set: Map<string, string>; remove: Set<string> }

/**
 * What has to change in a body of the upstream's own format, or undefined for nothing: the model, then overrides, then
 * defaults for what is still absent, then what the provider and the counting need.
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

/** Streams of OpenAI's older APIs report usage only when asked; every stream is asked, because every stream is counted. */
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

type Refused = { kind: 'refused'; refusal: Refusal }

function isRefusal(body: JsonObject | Refused): body is Refused {
  return 'refusal' in body && body['kind'] === 'refused'
}

/** As `translatedBody`, in slices. */
async function translatedLarge(
  json: JsonText,
  candidate: Candidate,
  translation: Translation,
  workQueue: WorkQueue,
): Promise<BodyFor> {
  const value = json.large && (await readExactObject(json.large.bytes, workQueue))
  const translated = translatedBody(value ?? json.value, candidate, translation)
  return isRefusal(translated) ? translated : workQueue.run(writeJsonSteps(translated))
}

function translatedBody(
  value: JsonObject,
  { target, model }: Candidate,
  translation: Translation,
): JsonObject | Refused {
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
      return { ...rest, max_completion_tokens: maxTokens }
    }
  }
  return body
}

function headersFor(client: Headers, call: Call, { target }: Candidate): Headers {
  const headers = filterHeaders(client)
  // Parameters of the client's type are not forwarded: servers that obey a charset would read another text.
  if (call.json !== undefined) headers['content-type'] = 'application/json'
  target.editHeaders?.(headers)
  // Bodies are read for usage and by guards: a coding would have to be taken off again.
  headers['accept-encoding'] = 'identity'
  const { defaultHeaders } = target.provider
  for (const name in defaultHeaders) headers[name] ??= defaultHeaders[name] ?? ''
  return headers
}

/** The path of a call nobody knows: the client's, or what is behind its version; the version itself where the provider's address lacks it. */
function passthroughPath(path: string, { provider, basePath, preservesPath: keepsPath }: Target): string {
  if (keepsPath) return path
  const versioned = Object.values(provider.paths).every((known) => known?.startsWith('/v1/'))
  const rest = pathAfterVersion(path)
  return versioned ? `${basePath}/v1${rest}` : basePath + rest
}

/** A credential of the client that no policy has used up. */
export function clientCredential(headers: Headers): string | undefined {
  const authorization = firstHeader(headers, 'authorization')
  if (authorization !== undefined && authorization.slice(0, 7).toLowerCase() === 'bearer ') {
    return authorization.slice(7).trim()
  }
  return firstHeader(headers, 'x-api-key')
}

/** Headers that tell about the client or the way to the gateway, or that are made anew. */
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
