import { exactObject } from '../../../lib/json/exact.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonLimits } from '../../../lib/json/limits.ts'
import type { FindAmbiguousName } from '../../../lib/json/names.ts'
import { type ReadJson, readJson } from '../../../lib/json/read.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { readJsonMediaType } from '../../../net/http/json-media-type.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange, LlmState, ModelAccess } from '../../../pipeline/exchange.ts'
import { findAmbiguousLlmName, findAmbiguousTopName } from '../../../pipeline/llm-names.ts'
import { type RequestBodyLimits, readRequestBody } from '../../../pipeline/request-body.ts'
import { requestPath } from '../attempt/provider-request.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Models } from '../models/models.ts'
import { type Call, createCall } from './call.ts'
import { type ClientEndpoint, deploymentIn, type Endpoints, formEndpoints, operations } from './endpoints.ts'
import { readForm } from './form/form.ts'
import { readFormBoundary } from './form/media-type.ts'
import { configuredOf, llmMessageOf } from './llm-message.ts'

export type RequestRules = RequestBodyLimits & {
  models: Pick<Models, 'resolve' | 'needsName'>
  endpoints: Pick<Endpoints, 'match'>
  jsonLimits: JsonLimits
  estimate: LlmState['estimate']
  workQueue: WorkQueue
  /** Paths of unknown calls are forwarded, to any model. */
  passesUnknown: boolean
}

/** Body of model list requests, which is neither read nor forwarded. */
const emptyBody = new Uint8Array(0)

/** Model name of requests without one. */
const unnamedModel = '*'

type JsonBody = { kind: 'json'; json: JsonText } | { kind: 'refused'; refusal: Refusal }

/**
 * Reads and validates an LLM request, and stores it in the facts and for the backend. Returns a refusal for
 * an invalid request.
 */
export function readRequest(
  exchange: Exchange,
  rules: RequestRules,
): Promise<Reply | undefined> | Reply | undefined {
  const method = exchange.forwarding?.method ?? exchange.facts.request.method
  const path = requestPath(exchange)
  const match = rules.endpoints.match(path)
  if (match.kind !== 'unknown')
    exchange.llm = {
      operation: operations[match.kind === 'endpoint' ? match.endpoint : match.kind],
      estimate: rules.estimate,
      message: undefined,
      rulesOfModels,
      call: undefined,
    }
  switch (match.kind) {
    case 'models':
      exchange.facts.body = emptyBody
      return method === 'GET' || method === 'HEAD' ? undefined : methodNotAllowed(exchange, 'GET, HEAD')
    case 'endpoint':
      if (method !== 'POST') return methodNotAllowed(exchange, 'POST')
      return readCall(exchange, match.endpoint, rules)
    case 'passthrough':
      if (!passthroughMethods.has(method))
        return methodNotAllowed(exchange, [...passthroughMethods].join(', '))
      return readPassthrough(exchange, rules)
    case 'unknown':
      return refuse(exchange, unknownEndpoint(path))
  }
}

function unknownEndpoint(path: string): Refusal {
  return { status: 404, code: 'not_found', message: `no LLM endpoint at ${path}` }
}

/** The mode of a call whose candidates all have `passthrough`; else requests are read as usual. */
function passthroughOf(candidates: readonly Candidate[]): 'detect' | 'opaque' | undefined {
  const [first, ...others] = candidates
  const mode = first?.target.passthrough
  if (mode === undefined || others.some(({ target }) => target.passthrough === undefined)) return undefined
  return others.some(({ target }) => target.passthrough === 'detect') ? 'detect' : mode
}

async function readCall(
  exchange: Exchange,
  endpoint: ClientEndpoint,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const { facts } = exchange
  const mediaType = readJsonMediaType(facts.request.headers)
  if (mediaType === 'other') {
    return formEndpoints.has(endpoint) ? readFormCall(exchange, endpoint, rules) : refuse(exchange, notJson)
  }
  if (mediaType === 'charset') return refuse(exchange, notUtf8)
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  facts.body = body.bytes
  const reading = readJson(body.bytes, rules.workQueue, rules.jsonLimits)
  const read = validateJson(reading instanceof Promise ? await reading : reading, findAmbiguousLlmName)
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  return acceptRead(exchange, { endpoint, bytes: body.bytes, json: read.json, files: undefined }, rules)
}

/** Reads a form, and treats its texts as a JSON body. */
async function readFormCall(
  exchange: Exchange,
  endpoint: ClientEndpoint,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const found = readFormBoundary(exchange.facts.request.headers['content-type'])
  if (found === undefined) return refuse(exchange, notForm)
  if (found.kind === 'invalid') return refuse(exchange, invalidBoundary)
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  exchange.facts.body = body.bytes
  const read = readForm(body.bytes, found.boundary)
  if (read.kind === 'invalid') return refuse(exchange, invalidField(undefined, read.message))
  const { fields, files } = read.form
  const valid = validateJson(fields, findAmbiguousLlmName)
  if (valid.kind === 'refused') return refuse(exchange, valid.refusal)
  return acceptRead(exchange, { endpoint, bytes: Buffer.from(fields.text), json: fields, files }, rules)
}

function acceptRead(
  exchange: Exchange,
  read: Omit<ParsedCall, 'model' | 'endpoint'> & { endpoint: ClientEndpoint; json: JsonText },
  rules: RequestRules,
): Reply | undefined {
  const { endpoint, json } = read
  const model = requestedModel(json.value, rules) ?? modelInPath(exchange, json.value)
  if (model === undefined) return refuse(exchange, missingModel)
  const issue =
    streamIssue(endpoint, json.value) ??
    (endpoint === 'responses' ? backgroundIssue(exchange, json.value, rules) : undefined)
  if (issue) return refuse(exchange, issue)
  return acceptCall(exchange, { ...read, model }, rules)
}

/** The requested model. It is optional if every target has a configured model. */
function requestedModel({ model }: JsonObject, { models }: RequestRules): string | undefined {
  if (typeof model === 'string' && model !== '') return model
  return model === undefined && !models.needsName ? unnamedModel : undefined
}

/** The model of a request whose body has none, in a path of Azure's SDKs. */
function modelInPath(exchange: Exchange, { model }: JsonObject): string | undefined {
  return model === undefined ? deploymentIn(requestPath(exchange))?.model : undefined
}

/** Reads a passthrough request. It goes to the model named in its body, else to the model `*`. */
async function readPassthrough(exchange: Exchange, rules: RequestRules): Promise<Reply | undefined> {
  const mediaType = readJsonMediaType(exchange.facts.request.headers)
  if (mediaType === 'charset') return refuse(exchange, notUtf8)
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  exchange.facts.body = body.bytes
  if (body.bytes.length === 0 || mediaType === 'other') {
    return acceptCall(
      exchange,
      { endpoint: 'passthrough', bytes: body.bytes, json: undefined, files: undefined, model: unnamedModel },
      rules,
    )
  }
  const read = validateJson(
    await readJson(body.bytes, rules.workQueue, rules.jsonLimits),
    findAmbiguousTopName,
  )
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { model } = read.json.value
  const name = typeof model === 'string' && model !== '' ? model : unnamedModel
  return acceptCall(
    exchange,
    { endpoint: 'passthrough', bytes: body.bytes, json: read.json, files: undefined, model: name },
    rules,
  )
}

type ParsedCall = {
  endpoint: ClientEndpoint | 'passthrough'
  bytes: Buffer
  json: JsonText | undefined
  files: Call['files']
  model: string
}

function acceptCall(
  exchange: Exchange,
  { endpoint, bytes, json, files, model }: ParsedCall,
  { models, workQueue, passesUnknown }: RequestRules,
): Reply | undefined {
  const { facts } = exchange
  facts.llm = {
    operation: operations[endpoint].operation,
    api: operations[endpoint].api,
    requestModel: model,
    configuredModel: undefined,
    provider: undefined,
    streaming: json?.value['stream'] === true,
    responseModel: undefined,
    cost: undefined,
    costStatus: undefined,
  }
  const access = exchange.auth.models
  if (access && !access.allows(model)) return refuse(exchange, modelNotAllowed)
  for (const param of ['models', 'fallbacks']) {
    if (access && !mayUseFallbacks(json?.value[param], access))
      return refuse(exchange, { ...modelNotAllowed, param })
  }
  facts.llmRequest = json && exactObject(json)
  const resolution = models.resolve(model, facts)
  if (resolution.kind === 'refused') return refuse(exchange, resolution.refusal)
  const options = json?.value['stream_options']
  const hideUsage = isJsonObject(options) && options['include_usage'] === false
  const { candidates, failover } = resolution
  const mode = passthroughOf(candidates)
  if (endpoint === 'passthrough' && mode === undefined && !passesUnknown)
    return refuse(exchange, unknownEndpoint(requestPath(exchange)))
  const call = createCall({
    endpoint: mode === 'opaque' ? 'passthrough' : endpoint,
    pathEndpoint: endpoint,
    bytes,
    json,
    files,
    candidates,
    failover,
    hideUsage: hideUsage && mode === undefined,
    unchanged: mode !== undefined,
  })
  if (exchange.llm) {
    exchange.llm.call = call
    exchange.llm.message = mode === undefined ? llmMessageOf(call, workQueue) : undefined
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

/** All methods except CONNECT and TRACE. */
const passthroughMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
])

function methodNotAllowed(exchange: Exchange, allow: string): Reply {
  return refuse(exchange, {
    status: 405,
    code: 'method_not_allowed',
    message: `${exchange.facts.request.method} is not allowed here; use ${allow}`,
    headers: { allow },
  })
}

function validateJson(json: ReadJson, findAmbiguousName: FindAmbiguousName): JsonBody {
  switch (json.kind) {
    case 'object': {
      const problem = findAmbiguousName(json.value)
      if (problem === undefined) return { kind: 'json', json }
      const { path } = problem
      if (problem.kind === 'too many') return invalidBody('request body has too many unknown keys', path)
      return invalidBody(
        `key "${path}" differs only in case from a field of the API or from another key`,
        path,
      )
    }
    case 'invalid':
      return invalidBody(`request body is ${json.message}`)
    case 'duplicate':
      return invalidBody(`duplicate key "${json.path.slice(0, 200)}"`, json.path.slice(0, 200))
  }
}

function invalidBody(message: string, param?: string): JsonBody {
  const refusal: Refusal = { status: 400, code: 'invalid_request_body', message }
  if (param !== undefined) refusal.param = param
  return { kind: 'refused', refusal }
}

/**
 * Rejects stream options that an upstream might interpret differently, because streams are counted
 * differently.
 */
function streamIssue(endpoint: ClientEndpoint, body: JsonObject): Refusal | undefined {
  const { stream, stream_options: options } = body
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean') {
    return invalidField('stream', 'stream must be true or false')
  }
  if (endpoint !== 'chat' && endpoint !== 'completions') return undefined
  if (options === undefined || options === null) return undefined
  if (!isJsonObject(options)) return invalidField('stream_options', 'stream_options must be an object')
  const { include_usage: includeUsage } = options
  if (includeUsage === undefined || includeUsage === null || typeof includeUsage === 'boolean')
    return undefined
  return invalidField('stream_options.include_usage', 'stream_options.include_usage must be true or false')
}

/**
 * Rejects background responses without an output limit, which is charged because they outlive the exchange,
 * and without a path to fetch the response from.
 */
function backgroundIssue(
  exchange: Exchange,
  body: JsonObject,
  { endpoints }: RequestRules,
): Refusal | undefined {
  const { background, max_output_tokens: limit } = body
  if (background === undefined || background === null || background === false) return undefined
  if (background !== true) return invalidField('background', 'background must be true or false')
  if (endpoints.match(`${requestPath(exchange)}/id`).kind !== 'passthrough') {
    return invalidField(
      'background',
      'background must be false: the path to fetch the response from is not forwarded',
    )
  }
  if (typeof limit === 'number' && Number.isSafeInteger(limit) && limit > 0) return undefined
  return invalidField(
    'max_output_tokens',
    'max_output_tokens must be set with background: its maximum is charged',
  )
}

function invalidField(param: string | undefined, message: string): Refusal {
  return { status: 400, code: 'invalid_request_body', message, ...(param !== undefined && { param }) }
}

/** A request without `content-type` counts as JSON, because plain HTTP clients omit it. */
const notJson: Refusal = {
  status: 415,
  code: 'unsupported_content_type',
  message: 'content-type must be application/json',
}

const notForm: Refusal = {
  ...notJson,
  message: 'content-type must be multipart/form-data or application/json',
}

const invalidBoundary: Refusal = {
  ...notJson,
  message: 'content-type must have one boundary of letters, digits and hyphens, and no other parameter',
}

const notUtf8: Refusal = { ...notJson, message: 'charset of content-type must be utf-8' }

const missingModel: Refusal = {
  status: 400,
  code: 'missing_model',
  message: 'model must be a non-empty string',
  param: 'model',
}

const modelNotAllowed: Refusal = {
  status: 403,
  code: 'model_not_allowed',
  message: 'Model is not allowed for this API key',
  param: 'model',
}

function rulesOfModels({ llm }: Exchange): readonly object[] {
  return llm?.call === undefined ? [] : configuredOf(llm.call, 'authorization')
}
