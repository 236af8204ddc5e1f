import { editBytes, editTopLevel, memberText } from '../../../lib/json/edit.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import { writeJsonSteps } from '../../../lib/json/write.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import type { OutgoingRequest } from '../../../net/http-client/send.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { objectBody } from '../batches/object-body.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Target } from '../models/target.ts'
import { type BodyChanges, type ProviderCall, pathsOf } from '../providers/provider.ts'
import { kindsOffering } from '../providers/providers.ts'
import type { Call } from '../request/call.ts'
import { isGeminiEndpoint } from '../request/gemini-path.ts'
import { vertexCallIn } from '../request/vertex-path.ts'
import { type Rewrite, readBody, rewriteBody } from '../rewrite/rewrite.ts'
import type { RequestIds } from '../stored/provider-objects.ts'
import { readExactObject, withExactNumbers } from '../translate/exact-json.ts'
import type { Translation } from '../translate/translate.ts'
import { translationsFrom } from '../translate/translations.ts'
import { setAnthropicFields, setTranslatedBetas } from './anthropic-fields.ts'
import { converseFields, fieldsAround, namedFor, setConfigured, withoutStream } from './configured-fields.ts'
import { requestsWithModel } from './embed-requests.ts'
import { endpointLabels } from './endpoint-labels.ts'
import { realtimeRequest } from './realtime-request.ts'
import { setBody } from './request-body.ts'
import { clientHeaders, headersFor } from './request-headers.ts'
import { nativePath, passthroughPath, pathAt, unreadPath } from './upstream-path.ts'

/**
 * The request to one provider, and the translation of its response, if any. The credential is added before
 * sending.
 */
export type PreparedRequest =
  | {
      kind: 'request'
      request: OutgoingRequest
      translation: Translation | undefined
      /** Settings that a translated response repeats. */
      settings: JsonObject | undefined
    }
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
  // The time of a streamed upload depends on its size and on the client.
  if (timeLimits.firstByteTimeoutMs !== undefined && call.object?.upload === undefined)
    request.firstByteTimeoutMs = timeLimits.firstByteTimeoutMs
  if (timeLimits.idleTimeoutMs !== undefined) request.idleTimeoutMs = timeLimits.idleTimeoutMs
  if (call.object)
    return withBody(request, call, { kind: 'body', body: objectBody(call, call.object) }, undefined)
  const { rewrite } = candidate.target
  const body =
    rewrite === undefined
      ? requestBody(call, candidate, route.translation, workQueue)
      : rewrittenBody(exchange, call, candidate, { translation: route.translation, rewrite, workQueue })
  return body instanceof Promise
    ? body.then((built) => withBody(request, call, built, route.translation))
    : withBody(request, call, body, route.translation)
}

/** The request without its body. */
function outgoingRequest(
  exchange: Exchange,
  call: Call,
  candidate: Candidate,
  path: string,
): OutgoingRequest {
  const { facts, forwarding, cancellation } = exchange
  const { provider, origin } = candidate.target
  // Queries of clouds contain keys or signatures of the client, and the form of the response.
  const query =
    vertexCallIn(requestPath(exchange)) || call.anthropic?.source === 'body' ? '' : queryOf(exchange)
  const others = call.modelInPath ? '' : query
  if (call.endpoint === 'realtime') return realtimeRequest(exchange, call, candidate, path)
  return {
    origin,
    path: path + (provider.editQuery === undefined ? others : provider.editQuery(query, path)),
    method: forwarding?.method ?? facts.request.method,
    headers: headersFor(clientHeaders(exchange), call, candidate),
    body: undefined,
    cancellation,
    connection: candidate.target.connection,
  }
}

function withBody(
  request: OutgoingRequest,
  call: Call,
  built: RequestBody,
  translation: Translation | undefined,
): PreparedRequest {
  if (built.kind === 'refused') return built
  setBody(request, call, built.body)
  return { kind: 'request', request, translation, settings: built.settings }
}

/** The query after rewrites by policies; empty, or with its question mark. */
export function queryOf({ facts, forwarding }: Exchange): string {
  return forwarding?.query ?? facts.request.query
}

/** The request path after rewrites by policies. */
export function requestPath({ facts, forwarding }: Exchange): string {
  return forwarding?.path ?? facts.request.path
}

/** `path` is the path at the upstream, without query. */
type ProviderRoute = { kind: 'route'; path: string; translation: Translation | undefined }

/**
 * Selects the provider's path: of the same endpoint if it has one, else of the endpoint after translation.
 */
function routeTo(call: Call, path: string, { target, model }: Candidate): ProviderRoute | Refused {
  const endpoint = call.pathEndpoint
  const { name } = target.provider
  const properties = providerCall(call, { target, model })
  const paths = pathsOf(target.provider, properties)
  if (endpoint === 'passthrough') {
    const upstream = unreadPath(path, target, { ...properties, hasBody: call.bytes.length > 0 })
    return upstream === undefined ? unreadCall : { kind: 'route', path: upstream, translation: undefined }
  }
  const same = nativePath(endpoint, paths, target)
  if (same !== undefined)
    return { kind: 'route', path: pathAt(target, same) + storedPath(call), translation: undefined }
  if (call.unchanged) return { kind: 'route', path: passthroughPath(path, target), translation: undefined }
  for (const translation of call.stored === undefined ? translationsFrom(endpoint) : []) {
    const other = paths[translation.upstream]
    if (other !== undefined) return { kind: 'route', path: pathAt(target, other), translation }
  }
  const offering = kindsOffering(endpoint).join(', ')
  const hint = offering === '' ? '' : `: use a model of another provider, such as ${offering}`
  const message = `provider ${name} of model "${target.configuredModel}" does not offer ${endpointLabels[endpoint]}${hint}`
  return { kind: 'refused', refusal: { status: 400, code: 'unsupported_endpoint', message } }
}

/** The path behind that of the call, of a stored response. */
function storedPath({ stored, reference, object }: Call): string {
  if (object !== undefined) return object.suffix
  if (stored === undefined || reference === undefined) return ''
  return `/${encodeURIComponent(reference.stored.id)}${stored}`
}

const unreadCall: Refused = {
  kind: 'refused',
  refusal: {
    status: 404,
    code: 'unknown_endpoint',
    message:
      'the path names another model, or is another spelling of a call of the provider: use /v1 and the path of the call, and name the model in the body',
  },
}

function providerCall({ json, streaming }: Call, { target, model }: Candidate): ProviderCall {
  return { model, streaming: streaming ?? isStreamed(json?.value ?? {}, target) }
}

/** Whether the request is streamed, after the changes of the configuration. */
function isStreamed(body: JsonObject, { overrides, defaults, removed = none }: Target): boolean {
  const own = removed.has('stream') ? undefined : (overrides.get('stream') ?? body['stream'])
  const streams = own === undefined && !Object.hasOwn(body, 'stream') ? defaults.get('stream') : own
  return streams === true || streams === 'true'
}

type RequestBody =
  | { kind: 'body'; body: Uint8Array | string | undefined; settings?: JsonObject | undefined }
  | Refused

type RewriteOptions = { translation: Translation | undefined; rewrite: Rewrite; workQueue: WorkQueue }

/** `requestBody` with changes before and after it. */
async function rewrittenBody(
  { facts }: Exchange,
  call: Call,
  candidate: Candidate,
  { translation, rewrite, workQueue }: RewriteOptions,
): Promise<RequestBody> {
  const { endpoint, json, bytes } = call
  if (json === undefined || endpoint === 'passthrough')
    return requestBody(call, candidate, translation, workQueue)
  const { before, after, final } = rewrite
  const content = before && (await rewriteBody({ json, bytes }, (body) => before(body, endpoint), workQueue))
  if (before !== undefined && content === undefined) return tooComplex
  const built = await requestBody({ ...call, ...content }, candidate, translation, workQueue)
  if (built.kind === 'refused' || built.body === undefined || (after ?? final) === undefined) return built
  const provider = translation?.upstream ?? endpoint
  const read = await readBody(Buffer.from(built.body), workQueue)
  const changed = read && after ? await rewriteBody(read, (body) => after(body, provider), workQueue) : read
  if (changed === undefined) return tooComplex
  const body = final ? editBytes(changed.json, final(facts, changed.json)) : changed.bytes
  return { kind: 'body', body, settings: built.settings }
}

const tooComplex: Refused = {
  kind: 'refused',
  refusal: {
    status: 400,
    code: 'invalid_request_body',
    message: 'request body is too complex for the changes of this model',
  },
}

function requestBody(
  call: Call,
  candidate: Candidate,
  translation: Translation | undefined,
  workQueue: WorkQueue,
): RequestBody | Promise<RequestBody> {
  const { json, bytes } = call
  if (call.endpoint === 'realtime') return { kind: 'body', body: undefined }
  if (json === undefined) return { kind: 'body', body: bytes.length > 0 ? bytes : undefined }
  if (translation) {
    if (json.large) return translateLarge(json, call, candidate, { translation, workQueue })
    // The input of a tool call may contain numbers that `JSON.parse` rounds.
    const value = inForm(withExactNumbers(json), call)
    const translated = translateRequest(value, call, candidate, translation)
    if (translated.kind === 'refused') return translated
    return { kind: 'body', body: JSON.stringify(translated.value), settings: translated.settings }
  }
  const edits = editsFor(json, call, candidate)
  return { kind: 'body', body: edits ? editBytes(json, edits) : bytes }
}

const none: ReadonlySet<string> = new Set()

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
  if (call.modelInPath) {
    if (Object.hasOwn(value, 'model')) remove.add('model')
    const requests = isGeminiEndpoint(call.pathEndpoint) ? requestsWithModel(value, model) : undefined
    if (requests !== undefined) set.set('requests', requests)
  } else if (value['model'] !== model && (named || call.pathEndpoint !== 'passthrough'))
    set.set('model', JSON.stringify(model))
  if (call.endpoint === 'passthrough' || call.unchanged)
    return set.size > 0 || remove.size > 0 ? { set, remove } : undefined
  // The body of a count has no fields of a request at its top.
  if (call.endpoint === 'converse_count') return set.size > 0 || remove.size > 0 ? { set, remove } : undefined
  const fields = call.streaming === undefined ? target : withoutStream(target)
  const { overrides, defaults, removed } =
    call.endpoint === 'converse' ? converseFields(value, fields) : fields
  for (const [name, text] of overrides) set.set(name, text)
  for (const [name, text] of defaults) {
    if (!Object.hasOwn(value, name) && !set.has(name)) set.set(name, text)
  }
  for (const name of removed ?? none) remove.add(name)
  if (call.objectIds !== undefined) setObjectIds(json, call.objectIds, set)
  if (call.reference !== undefined) set.set('previous_response_id', JSON.stringify(call.reference.stored.id))
  requestUsage(json, call, set)
  renameMaxTokens(json, call, { target, model }, { set, remove })
  const { provider } = target
  const changes = provider.changesFor?.(call.endpoint, providerCall(call, { target, model }))
  if (changes !== undefined) applyChanges(changes, { set, remove })
  setAnthropicFields(json, call, target.provider, { set, remove })
  return set.size > 0 || remove.size > 0 ? { set, remove } : undefined
}

/** Members with ids of objects. */
const namingMembers = ['input', 'tools', 'messages', 'container']

/** Replaces ids of objects by those of the provider. Complete JSON strings cannot occur inside of others. */
function setObjectIds(json: JsonText, ids: RequestIds, set: Map<string, string>): void {
  for (const name of namingMembers) {
    const text = set.get(name) ?? memberText(json, name)
    const replaced = text?.replace(/"([\w-]{5,300})"/g, (whole, id: string) => {
      const own = ids.get(id)
      return own === undefined ? whole : JSON.stringify(own)
    })
    if (replaced !== undefined && replaced !== text) set.set(name, replaced)
  }
}

function applyChanges(changes: BodyChanges, { set, remove }: Edits): void {
  for (const [name, text] of changes.set) set.set(name, text)
  for (const name of changes.remove) {
    set.delete(name)
    remove.add(name)
  }
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
  call: Call,
  candidate: Candidate,
  { translation, workQueue }: { translation: Translation; workQueue: WorkQueue },
): Promise<RequestBody> {
  const value = json.large && (await readExactObject(json.large.bytes, workQueue))
  const translated = translateRequest(inForm(value ?? json.value, call), call, candidate, translation)
  if (translated.kind === 'refused') return translated
  const body = await workQueue.run(writeJsonSteps(translated.value))
  return { kind: 'body', body, settings: translated.settings }
}

/** The body with the form of the response, which the path of some calls has. */
function inForm(value: JsonObject, { streaming }: Call): JsonObject {
  return streaming === undefined ? value : { ...value, stream: streaming }
}

function translateRequest(
  value: JsonObject,
  call: Call,
  { target, model }: Candidate,
  translation: Translation,
): { kind: 'object'; value: JsonObject; settings: JsonObject | undefined } | Refused {
  const edited: JsonObject = { ...value, model }
  const fields = call.streaming === undefined ? target : withoutStream(target)
  const { before, after } = fieldsAround(edited, call.pathEndpoint, fields)
  if (before) setConfigured(edited, before)
  const translated = translation.request(edited)
  if (translated.kind === 'unsupported') {
    const { param, message } = translated
    return { kind: 'refused', refusal: { status: 400, code: 'unsupported_parameter', message, param } }
  }
  const { settings } = translated
  if (after) setConfigured(translated.body, namedFor(translation.upstream, after))
  const body = withRenamedLimit(translated.body, translation, { target, model })
  const streaming = edited['stream'] === true
  setTranslatedBetas(body, call, translation.upstream, { target, model })
  const changes = target.provider.changesFor?.(translation.upstream, { model, streaming })
  if (changes === undefined) return { kind: 'object', value: body, settings }
  for (const [name, text] of changes.set) body[name] = JSON.parse(text)
  for (const name of changes.remove) delete body[name]
  return { kind: 'object', value: body, settings }
}

function withRenamedLimit(
  body: JsonObject,
  { upstream }: Translation,
  { target, model }: Candidate,
): JsonObject {
  const { max_tokens: maxTokens, ...rest } = body
  const renames = upstream === 'chat' && maxTokens !== undefined && target.provider.renamesMaxTokens?.(model)
  return renames ? { ...rest, max_completion_tokens: maxTokens } : body
}
