import { ownerOf } from '../../../identity/owner.ts'
import { exactObject } from '../../../lib/json/exact.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonLimits } from '../../../lib/json/limits.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange, LlmState, ModelAccess } from '../../../pipeline/exchange.ts'
import type { RequestBodyLimits } from '../../../pipeline/request-body.ts'
import { requestPath } from '../attempt/provider-request.ts'
import { clientHeaders } from '../attempt/request-headers.ts'
import { fileElsewhere, type OwnFiles } from '../batches/file-references.ts'
import type { ObjectIds } from '../batches/object-ids.ts'
import type { OwnedObjects } from '../lists/owned-objects.ts'
import { type Candidate, configuredModelOf } from '../models/candidate.ts'
import type { Models } from '../models/models.ts'
import { maxModelLength } from '../models/name-pattern.ts'
import { isOfClient } from '../models/target.ts'
import { pathsOf } from '../providers/provider.ts'
import { checkCloudObjects } from '../stored/cloud-objects.ts'
import { checkFiles } from '../stored/provider-files.ts'
import { type ObjectRules, type RequestIds, readObjects, sealsIds } from '../stored/provider-objects.ts'
import { type ResponseIds, withoutMac } from '../stored/response-ids.ts'
import { placeOf } from '../stored/sealed-ids.ts'
import type { StoredAction } from '../stored/stored-path.ts'
import { type AnthropicSettings, settingsInHeaders } from './anthropic-settings.ts'
import { type Call, createCall, type ResponseReference } from './call.ts'
import { type ClientEndpoint, type Endpoints, operations } from './endpoints.ts'
import { llmMessageOf } from './llm-message.ts'

export type RequestRules = RequestBodyLimits & {
  models: Pick<Models, 'resolve' | 'needsName' | 'targetNamed' | 'listed'>
  responseIds: ResponseIds
  objectIds: ObjectIds
  /** Undefined without a database. */
  ownedObjects: OwnedObjects | undefined
  endpoints: Pick<Endpoints, 'match'>
  jsonLimits: JsonLimits
  estimate: LlmState['estimate']
  workQueue: WorkQueue
  /** Paths of unknown calls are forwarded, to any model. */
  passesUnknown: boolean
}

export type ParsedCall = {
  endpoint: ClientEndpoint | 'passthrough'
  bytes: Buffer
  json: JsonText | undefined
  files: Call['files']
  model: string
  /** Streaming by the path; undefined if the body determines it. */
  streaming?: boolean
  reference?: ResponseReference
  /** The service that has the files of the request; undefined without files. */
  filePlace?: string
  /** Ids at the provider of the files that the client has named by its own ids. */
  ownFiles?: OwnFiles | undefined
  /** Undefined for a new response. */
  stored?: StoredAction
  anthropic?: AnthropicSettings
  /** The body of the client, of a call in the form of a cloud; models with `passthrough` receive it. */
  original?: { readonly bytes: Buffer; readonly json: JsonText }
}

/** Resolves the model of a request, and stores the call. Returns a refusal for an invalid one. */
export function acceptCall(exchange: Exchange, parsed: ParsedCall, rules: RequestRules): Reply | undefined {
  const { endpoint, files, model, stored, original } = parsed
  const { models, workQueue, passesUnknown } = rules
  const { facts } = exchange
  if (model.length > maxModelLength) return refuse(exchange, modelTooLong)
  facts.llm = {
    ...operations[stored === undefined ? endpoint : 'stored'],
    requestModel: model,
    configuredModel: undefined,
    provider: undefined,
    streaming: parsed.streaming ?? parsed.json?.value['stream'] === true,
    responseModel: undefined,
    cost: undefined,
    costStatus: undefined,
  }
  const access = exchange.auth.models
  if (access && !access.allows(model)) return refuse(exchange, modelNotAllowed)
  for (const param of ['models', 'fallbacks']) {
    if (access && !mayUseFallbacks(parsed.json?.value[param], access))
      return refuse(exchange, { ...modelNotAllowed, param })
  }
  const ofTool = access && foreignToolModel(parsed.json?.value['tools'], access)
  if (ofTool !== undefined) return refuse(exchange, { ...modelNotAllowed, param: ofTool })
  facts.llmRequest = parsed.json && exactObject(parsed.json)
  const resolution = models.resolve(model, facts)
  if (resolution.kind === 'refused') return refuse(exchange, resolution.refusal)
  const mode = endpoint === 'realtime' ? undefined : passthroughOf(resolution.candidates)
  const asSent = mode === undefined ? undefined : original
  const { bytes, json } = asSent ?? parsed
  const options = json?.value['stream_options']
  const hideUsage = isJsonObject(options) && options['include_usage'] === false
  const isStoring = endpoint === 'responses' && mode === undefined && storesResponses(resolution.candidates)
  const previous = isStoring && json ? previousOf(exchange, json.value, rules) : undefined
  if (previous && 'status' in previous) return refuse(exchange, previous)
  const isChecked = mode === undefined && endpoint !== 'passthrough'
  const objectIds =
    isChecked && json
      ? objectsOf(
          exchange,
          { endpoint, ownFiles: parsed.ownFiles, isStoring },
          { body: json.value, candidates: resolution.candidates },
          rules,
        )
      : undefined
  if (objectIds && 'status' in objectIds) return refuse(exchange, objectIds)
  const reference = previous ?? parsed.reference
  const found =
    reference === undefined
      ? resolution.candidates
      : storedCandidates({ candidates: resolution.candidates, model }, reference, rules)
  if (found.length === 0) return refuse(exchange, stored === undefined ? previousElsewhere : responseNotFound)
  const { filePlace } = parsed
  const candidates =
    filePlace === undefined ? found : found.filter(({ target }) => placeOf(target) === filePlace)
  if (candidates.length === 0) return refuse(exchange, fileElsewhere)
  if (endpoint === 'passthrough' && mode === undefined && !passesUnknown)
    return refuse(exchange, unknownEndpoint(requestPath(exchange)))
  const call = createCall({
    endpoint: mode === 'opaque' ? 'passthrough' : endpoint,
    pathEndpoint: endpoint,
    bytes,
    json,
    files,
    reference,
    objectIds: objectIds?.size === 0 ? undefined : objectIds,
    sealsIds: isChecked && (sealsIds(endpoint, json?.value) || citesFiles(endpoint, parsed.ownFiles)),
    ownFiles: parsed.ownFiles,
    stored,
    object: undefined,
    candidates,
    failover: resolution.failover,
    streaming: parsed.streaming ?? (asSent && facts.llm.streaming),
    modelInPath: hasModelInPath(endpoint) || asSent !== undefined,
    anthropic: parsed.anthropic ?? settingsInHeaders(clientHeaders(exchange)),
    hideUsage: hideUsage && mode === undefined,
    unchanged: mode !== undefined,
  })
  if (exchange.llm) {
    exchange.llm.operation = operations[stored === undefined ? endpoint : 'stored']
    exchange.llm.call = call
    exchange.llm.message = mode === undefined ? llmMessageOf(call, workQueue) : undefined
  }
  return undefined
}

/** Citations in messages name the files of the request. */
function citesFiles(endpoint: ParsedCall['endpoint'], files: OwnFiles | undefined): boolean {
  return endpoint === 'messages' && files !== undefined
}

export const modelTooLong: Refusal = {
  status: 400,
  code: 'invalid_request_body',
  message: `model must have at most ${maxModelLength} characters`,
  param: 'model',
}

/** Calls whose path has the model, and whose body has none. */
function hasModelInPath(endpoint: ParsedCall['endpoint']): boolean {
  switch (endpoint) {
    case 'generate_content':
    case 'gemini_count_tokens':
    case 'embed_content':
    case 'batch_embed_contents':
    case 'converse':
    case 'converse_count':
    case 'invoke':
      return true
    default:
      return false
  }
}

export function unknownEndpoint(path: string): Refusal {
  const [, call] = unservedCall.exec(path) ?? []
  const reason = call === undefined ? '' : `: ${call} is not served`
  return { status: 404, code: 'not_found', message: `no LLM endpoint at ${path}${reason}` }
}

/** Calls of OpenAI's API that clients may expect. */
const unservedCall = /\/v1\/(conversations|vector_stores|fine_tuning|videos)(?:\/|$)/

/** The mode of a call whose candidates all have `passthrough`; else requests are read as usual. */
function passthroughOf(candidates: readonly Candidate[]): 'detect' | 'opaque' | undefined {
  const [first, ...others] = candidates
  const mode = first?.target.passthrough
  if (mode === undefined || others.some(({ target }) => target.passthrough === undefined)) return undefined
  return others.some(({ target }) => target.passthrough === 'detect') ? 'detect' : mode
}

/** The previous response that a request names; a refusal if it is not one of this client. */
function previousOf(
  exchange: Exchange,
  { previous_response_id: text }: JsonObject,
  { responseIds }: RequestRules,
): ResponseReference | Refusal | undefined {
  if (text === undefined || text === null) return undefined
  const stored = typeof text === 'string' ? responseIds.open(text, ownerOf(exchange)) : undefined
  return stored === undefined || typeof text !== 'string' ? previousNotFound : { text, stored }
}

/** Objects that a request names; a refusal for those in the account of the gateway whose owner is unknown. */
function objectsOf(
  exchange: Exchange,
  { endpoint, ownFiles = noFiles, isStoring }: NamingRequest,
  { body, candidates }: { body: JsonObject; candidates: readonly Candidate[] },
  { responseIds }: RequestRules,
): RequestIds | Refusal {
  const permits = permittedBy(candidates)
  const refusal = checkFiles(body, ownFiles, permits) ?? checkCloudObjects(endpoint, body, permits)
  if (refusal !== undefined) return refusal
  if (endpoint === 'responses' && !isStoring) return noIds
  let owner: string | undefined
  const open: ObjectRules['open'] = (id, kind) => {
    owner ??= ownerOf(exchange)
    return responseIds.openObject(id, kind, owner)
  }
  return readObjects(endpoint, body, { open, withoutMac, permits })
}

type NamingRequest = Pick<ParsedCall, 'ownFiles'> & { endpoint: ClientEndpoint; isStoring: boolean }

const noIds: RequestIds = new Map()
const noFiles: OwnFiles = new Map()

function permittedBy(candidates: readonly Candidate[]): ObjectRules['permits'] {
  return (kind) => candidates.every(({ target }) => target.sharedObjects.has(kind) || isOfClient(target))
}

/** Translation refuses previous responses, with a message of its own. */
function storesResponses(candidates: readonly Candidate[]): boolean {
  return candidates.some(
    ({ target, model }) => pathsOf(target.provider, { model, streaming: false }).responses !== undefined,
  )
}

/**
 * The candidates that have the response. The choice of a virtual model may differ from the earlier one;
 * another model must not be served by a target that neither its name nor its key permits.
 */
function storedCandidates(
  { candidates, model }: { candidates: readonly Candidate[]; model: string },
  { stored: { place, configuredModel, requestModel } }: ResponseReference,
  { models }: RequestRules,
): readonly Candidate[] {
  const found = candidates.filter(({ target }) => placeOf(target) === place)
  if (found.length > 0) return found
  if (model !== requestModel) return []
  const target = models.targetNamed?.(configuredModel)
  if (target === undefined || placeOf(target) !== place) return []
  return [{ target, model: configuredModelOf(target) ?? requestModel }]
}

/** The model of a tool that the provider runs, such as an image generator, which the key does not permit. */
function foreignToolModel(tools: JsonValue | undefined, access: ModelAccess): string | undefined {
  for (const [index, tool] of Array.isArray(tools) ? tools.entries() : []) {
    const model = isJsonObject(tool) ? tool['model'] : undefined
    if (model === undefined || model === null) continue
    if (typeof model !== 'string' || !access.allows(model)) return `tools[${index}].model`
  }
  return undefined
}

/**
 * Checks `models` (OpenRouter) and `fallbacks` (Anthropic) against the models of the key, because they name
 * further models. `default` in `fallbacks` may be any model.
 */
function mayUseFallbacks(models: JsonValue | undefined, access: ModelAccess): boolean {
  if (models === undefined || models === null) return true
  if (!Array.isArray(models)) return false
  return models.every((item) => {
    const name = isJsonObject(item) ? item['model'] : item
    return typeof name === 'string' && access.allows(name)
  })
}

export const responseNotFound: Refusal = {
  status: 404,
  code: 'response_not_found',
  message: 'No response with this id, or it belongs to another client',
}

const previousNotFound: Refusal = {
  status: 400,
  code: 'previous_response_not_found',
  message:
    'previous_response_id must be the id of a response that this client has created through the gateway',
  param: 'previous_response_id',
}

const previousElsewhere: Refusal = {
  ...previousNotFound,
  message: 'the provider of the previous response does not serve this model: use the model of that response',
}

export const modelNotAllowed: Refusal = {
  status: 403,
  code: 'model_not_allowed',
  message: 'Model is not allowed for this API key',
  param: 'model',
}
