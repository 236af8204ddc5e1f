import { ownerOf } from '../../../identity/owner.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { readJson } from '../../../lib/json/read.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import { type JsonMediaType, readJsonMediaType } from '../../../net/http/json-media-type.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { LlmOperation } from '../../../pipeline/facts/llm-facts.ts'
import { findAmbiguousLlmName, findAmbiguousTopName } from '../../../pipeline/llm-names.ts'
import { readRequestBody } from '../../../pipeline/request-body.ts'
import { forwardingOf } from '../../../pipeline/request-edits.ts'
import { requestPath } from '../attempt/provider-request.ts'
import { replaceFileIds } from '../batches/file-references.ts'
import { actionsAt, objectFor } from '../batches/object-path.ts'
import { readObject } from '../batches/read-object.ts'
import { storedMethods } from '../stored/stored-path.ts'
import {
  acceptCall,
  type ParsedCall,
  type RequestRules,
  responseNotFound,
  unknownEndpoint,
} from './accept-call.ts'
import { backgroundIssue, notJson, streamIssue, validateJson } from './body-checks.ts'
import {
  type ClientEndpoint,
  deploymentIn,
  type EndpointMatch,
  formEndpoints,
  operations,
} from './endpoints.ts'
import { readFormRequest } from './form/form-request.ts'
import { ambiguousNamesOf, configuredOf } from './llm-message.ts'
import { acceptPathCall } from './path-call.ts'
import { modelOfPath } from './path-model.ts'
import { bypassesGateway, readRealtimeRequest } from './realtime-request.ts'

/** Body of model list requests, which is neither read nor forwarded. */
const emptyBody = new Uint8Array(0)

/** Model name of requests without one. */
const unnamedModel = '*'

/**
 * Reads and validates an LLM request, and stores it in the facts and for the backend. Returns a refusal for
 * an invalid request.
 */
export function readRequest(
  exchange: Exchange,
  rules: RequestRules,
): Promise<Reply | undefined> | Reply | undefined {
  // A response of a realtime connection, which is described already.
  if (exchange.llm !== undefined) return undefined
  const method = exchange.forwarding?.method ?? exchange.facts.request.method
  const path = requestPath(exchange)
  const match = matchOf(exchange, rules.endpoints.match(path))
  if (match.kind !== 'unknown' && match.kind !== 'bypass')
    exchange.llm = {
      operation: operationOf(match),
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
      if (match.endpoint === 'realtime') return readRealtime(exchange, method, rules)
      if (method !== 'POST') return methodNotAllowed(exchange, 'POST')
      return readCall(exchange, match.endpoint, rules)
    case 'stored':
      return readStored(exchange, { ...match, method }, rules)
    case 'object':
      return readObjectCall(exchange, { ...match, method }, rules)
    case 'passthrough':
      if (!passthroughMethods.has(method))
        return methodNotAllowed(exchange, [...passthroughMethods].join(', '))
      return readPassthrough(exchange, rules)
    case 'bypass':
      return refuse(exchange, bypassesGateway)
    case 'unknown':
      return refuse(exchange, unknownEndpoint(path))
  }
}

function matchOf({ facts }: Exchange, match: EndpointMatch): EndpointMatch {
  if (match.kind !== 'object') return match
  return { ...match, object: objectFor(match.object, facts.request.headers) }
}

function operationOf(match: Exclude<EndpointMatch, { kind: 'unknown' | 'bypass' }>): LlmOperation {
  if (match.kind === 'object') return operations[match.object.endpoint]
  return operations[match.kind === 'endpoint' ? match.endpoint : match.kind]
}

type ObjectMatch = Extract<EndpointMatch, { kind: 'object' }> & { method: string }

/** Reads a call about files or batches. Lists and unknown ids are forwarded if the configuration permits. */
function readObjectCall(
  exchange: Exchange,
  { object, passes, method }: ObjectMatch,
  rules: RequestRules,
): Promise<Reply | undefined> | Reply | undefined {
  const actions = actionsAt(object)
  const action = actions[method]
  if (action === undefined) return methodNotAllowed(exchange, Object.keys(actions).join(', '))
  const { endpoint, id } = object
  const isOurs =
    action === 'create' ||
    (id !== undefined && rules.objectIds.open(endpoint, id, ownerOf(exchange)) !== undefined)
  if (passes && !isOurs) return readPassthrough(exchange, rules)
  return readObject(exchange, { ...object, action }, rules)
}

async function readCall(
  exchange: Exchange,
  endpoint: ClientEndpoint,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const { facts } = exchange
  const mediaType = bodyTypeOf(endpoint, facts.request.headers)
  if (mediaType === 'other') {
    return formEndpoints.has(endpoint) ? readFormCall(exchange, endpoint, rules) : refuse(exchange, notJson)
  }
  if (mediaType === 'charset') return refuse(exchange, notUtf8)
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  facts.body = body.bytes
  const reading = readJson(body.bytes, rules.workQueue, rules.jsonLimits)
  const read = validateJson(reading instanceof Promise ? await reading : reading, ambiguousNamesOf(endpoint))
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const found = replaceFileIds(exchange, body.bytes, rules.objectIds)
  if (found.kind === 'refused') return refuse(exchange, found.refusal)
  if (found.kind === 'none')
    return acceptRead(exchange, { endpoint, bytes: body.bytes, json: read.json, files: undefined }, rules)
  const { bytes, place: filePlace, ids: ownFiles } = found
  const replaced = validateJson(
    await readJson(bytes, rules.workQueue, rules.jsonLimits),
    ambiguousNamesOf(endpoint),
  )
  if (replaced.kind === 'refused') return refuse(exchange, replaced.refusal)
  return acceptRead(
    exchange,
    { endpoint, bytes, json: replaced.json, files: undefined, filePlace, ownFiles },
    rules,
  )
}

/** AWS's SDKs send the JSON of `InvokeModel` as bytes if the application sets no content type. */
function bodyTypeOf(endpoint: ClientEndpoint, headers: Headers): JsonMediaType {
  const type = firstHeader(headers, 'content-type')
  if (endpoint !== 'invoke' || type === undefined) return readJsonMediaType(headers)
  return readJsonMediaType({ 'content-type': type.replace(octetStream, 'application/json') })
}

const octetStream = /^\s*application\/octet-stream(?=\s*(?:;|$))/i

/** Reads a form, and treats its texts as a JSON body. */
async function readFormCall(
  exchange: Exchange,
  endpoint: ClientEndpoint,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const read = await readFormRequest(exchange, rules, { notForm, findAmbiguousName: findAmbiguousLlmName })
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { fields, files } = read.form
  return acceptRead(exchange, { endpoint, bytes: Buffer.from(fields.text), json: fields, files }, rules)
}

function acceptRead(
  exchange: Exchange,
  read: Omit<ParsedCall, 'model' | 'endpoint'> & { endpoint: ClientEndpoint; json: JsonText },
  rules: RequestRules,
): Promise<Reply | undefined> | Reply | undefined {
  return acceptPathCall(exchange, read, rules, () => acceptNamed(exchange, read, rules))
}

/** Accepts a call with the model in its body. */
function acceptNamed(
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

/** Reads the request of a realtime connection. Its query has the model. */
function readRealtime(exchange: Exchange, method: string, rules: RequestRules): Reply | undefined {
  if (method !== 'GET') return methodNotAllowed(exchange, 'GET')
  exchange.facts.body = emptyBody
  const read = readRealtimeRequest(exchange)
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const model = requestedModel(read.model === undefined ? {} : { model: read.model }, rules)
  if (model === undefined)
    return refuse(exchange, { ...missingModel, message: 'the query must have a model' })
  const bytes = Buffer.from(emptyBody)
  return acceptCall(
    exchange,
    { endpoint: 'realtime', bytes, json: undefined, files: undefined, model },
    rules,
  )
}

type StoredMatch = Extract<EndpointMatch, { kind: 'stored' }> & { method: string }

/** Reads a call of a stored response, which only its owner may make. */
function readStored(
  exchange: Exchange,
  { id, action, passes, method }: StoredMatch,
  rules: RequestRules,
): Promise<Reply | undefined> | Reply | undefined {
  const stored = rules.responseIds.open(id, ownerOf(exchange))
  if (stored === undefined)
    return passes ? readPassthrough(exchange, rules) : refuse(exchange, responseNotFound)
  const methods = storedMethods[action]
  if (!methods.includes(method)) return methodNotAllowed(exchange, methods.join(', '))
  exchange.facts.body = emptyBody
  return acceptCall(
    exchange,
    {
      ...{ endpoint: 'responses', bytes: Buffer.from(emptyBody), json: undefined, files: undefined },
      model: stored.requestModel,
      reference: { text: id, stored },
      stored: action,
    },
    rules,
  )
}

/** Reads a passthrough request. It goes to the model in its body, else in its path, else to the model `*`. */
async function readPassthrough(exchange: Exchange, rules: RequestRules): Promise<Reply | undefined> {
  const mediaType = readJsonMediaType(exchange.facts.request.headers)
  if (mediaType === 'charset') return refuse(exchange, notUtf8)
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  exchange.facts.body = body.bytes
  openContainer(exchange, rules)
  const ofPath = modelOfPath(requestPath(exchange)) ?? unnamedModel
  if (body.bytes.length === 0 || mediaType === 'other') {
    return acceptCall(
      exchange,
      { endpoint: 'passthrough', bytes: body.bytes, json: undefined, files: undefined, model: ofPath },
      rules,
    )
  }
  const read = validateJson(
    await readJson(body.bytes, rules.workQueue, rules.jsonLimits),
    findAmbiguousTopName,
  )
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { model } = read.json.value
  const name = typeof model === 'string' && model !== '' ? model : ofPath
  return acceptCall(
    exchange,
    { endpoint: 'passthrough', bytes: body.bytes, json: read.json, files: undefined, model: name },
    rules,
  )
}

/** Replaces the id of a container in the path, which this client has received, by that of the provider. */
function openContainer(exchange: Exchange, { responseIds }: RequestRules): void {
  const path = requestPath(exchange)
  const [, before = '', id] = containerPath.exec(path) ?? []
  const own = id && responseIds.openObject(id, 'container', ownerOf(exchange))
  if (id && own) forwardingOf(exchange).path = before + own + path.slice(before.length + id.length)
}

const containerPath = /^(.*\/containers\/)([\w-]+)(?=\/|$)/

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

const notForm: Refusal = {
  ...notJson,
  message: 'content-type must be multipart/form-data or application/json',
}

const notUtf8: Refusal = { ...notJson, message: 'charset of content-type must be utf-8' }

const missingModel: Refusal = {
  status: 400,
  code: 'missing_model',
  message: 'model must be a non-empty string',
  param: 'model',
}

function rulesOfModels({ llm }: Exchange): readonly object[] {
  return llm?.call === undefined ? [] : configuredOf(llm.call, 'authorization')
}
