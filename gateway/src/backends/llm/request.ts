import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json.ts'
import { type JsonText, readJsonObject } from '../../lib/json-text.ts'
import { readAll } from '../../net/body.ts'
import { firstHeader, type Headers } from '../../net/headers.ts'
import type { Reply } from '../../net/send.ts'
import { type Refusal, refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { createCall } from './call.ts'
import { type DecodeErrors, decode, isPlain } from './encoding.ts'
import type { Endpoint, Endpoints } from './endpoints.ts'
import { pathOf } from './forward.ts'
import { messageOf } from './message.ts'
import type { Models } from './models.ts'

export type RequestRules = {
  models: Pick<Models, 'resolve' | 'needsName'>
  endpoints: Pick<Endpoints, 'ask'>
  /** Bound on a body, before and after a content coding is taken off. */
  maxBodyBytes: number
}

/** Stands for the model of a request that names none. */
const unnamedModel = '*'

type Body = { kind: 'body'; bytes: Buffer } | { kind: 'refused'; refusal: Refusal }
type Read = { kind: 'json'; json: JsonText } | { kind: 'refused'; refusal: Refusal }

/**
 * Reads and checks what the client asks for, and leaves it in the facts and for the backend. Returns the refusal where
 * it is no request an LLM could be asked.
 */
export function readRequest(
  exchange: Exchange,
  rules: RequestRules,
): Promise<Reply | undefined> | Reply | undefined {
  const { method } = exchange.facts.request
  const path = pathOf(exchange)
  const asked = rules.endpoints.ask(path)
  switch (asked.kind) {
    case 'models':
      return method === 'GET' || method === 'HEAD' ? undefined : methodNotAllowed(exchange, 'GET, HEAD')
    case 'endpoint':
      if (method !== 'POST') return methodNotAllowed(exchange, 'POST')
      return readCall(exchange, asked.endpoint, rules)
    case 'passthrough':
      if (!passedMethods.has(method)) return methodNotAllowed(exchange, [...passedMethods].join(', '))
      return readPassthrough(exchange, rules)
    case 'unknown':
      return refuse(exchange, {
        status: 404,
        code: 'not_found',
        message: `no LLM endpoint at ${path}`,
      })
  }
}

async function readCall(
  exchange: Exchange,
  endpoint: Endpoint,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const { facts } = exchange
  const { headers } = facts.request
  if (!isJsonType(firstHeader(headers, 'content-type'))) {
    return refuse(exchange, {
      status: 415,
      code: 'unsupported_content_type',
      message: 'content-type must be application/json',
    })
  }
  const body = await readBody(exchange, rules.maxBodyBytes)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  const read = readJson(body.bytes)
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { json } = read
  const model = modelOf(json.value, rules)
  if (model === undefined) return refuse(exchange, missingModel)
  const mistake = streamMistake(endpoint, json.value)
  if (mistake) return refuse(exchange, mistake)
  return take(exchange, { endpoint, bytes: body.bytes, json, model }, rules)
}

/** The model that is asked for; where every target has one of its own, it need not be said. */
function modelOf({ model }: JsonObject, { models }: RequestRules): string | undefined {
  if (typeof model === 'string' && model !== '') return model
  return model === undefined && !models.needsName ? unnamedModel : undefined
}

/** A path nobody thought of: it goes to the model its body names, else to the one named `*`. */
async function readPassthrough(exchange: Exchange, rules: RequestRules): Promise<Reply | undefined> {
  const body = await readBody(exchange, rules.maxBodyBytes)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  const contentType = firstHeader(exchange.facts.request.headers, 'content-type')
  if (body.bytes.length === 0 || !isJsonType(contentType)) {
    return take(
      exchange,
      { endpoint: 'passthrough', bytes: body.bytes, json: undefined, model: unnamedModel },
      rules,
    )
  }
  const read = readJson(body.bytes)
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { model } = read.json.value
  const name = typeof model === 'string' && model !== '' ? model : unnamedModel
  return take(exchange, { endpoint: 'passthrough', bytes: body.bytes, json: read.json, model: name }, rules)
}

type Taken = { endpoint: Endpoint | 'passthrough'; bytes: Buffer; json: JsonText | undefined; model: string }

function take(
  exchange: Exchange,
  { endpoint, bytes, json, model }: Taken,
  { models }: RequestRules,
): Reply | undefined {
  const { facts, mayUseModel } = exchange
  if (mayUseModel && !mayUseModel(model)) return refuse(exchange, modelNotAllowed)
  if (mayUseModel && !mayFallBack(json?.value['models'], mayUseModel))
    return refuse(exchange, { ...modelNotAllowed, param: 'models' })
  facts.llmRequest = json?.value
  facts.llm = {
    requestModel: model,
    configuredModel: undefined,
    provider: undefined,
    streaming: json?.value['stream'] === true,
    responseModel: undefined,
    cost: undefined,
    costStatus: undefined,
  }
  const resolution = models.resolve(model, facts)
  if (resolution.kind === 'refused') return refuse(exchange, resolution.refusal)
  const options = json?.value['stream_options']
  const hideUsage = isJsonObject(options) && options['include_usage'] === false
  const call = createCall({ endpoint, bytes, json, candidates: resolution.candidates, hideUsage })
  exchange.backendState = call
  call.message = messageOf(call)
  exchange.llmMessage = call.message
  return undefined
}

/** `models` names further models to some services (OpenRouter's fallbacks), which must not be a way around the key's. */
function mayFallBack(models: JsonValue | undefined, mayUseModel: (model: string) => boolean): boolean {
  if (models === undefined || models === null) return true
  return Array.isArray(models) && models.every((name) => typeof name === 'string' && mayUseModel(name))
}

/** Not those that ask for a tunnel or for the request back. */
const passedMethods: ReadonlySet<string> = new Set([
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

/** Absent counts as JSON, since plain HTTP clients leave it out; every other type would be read differently elsewhere. */
function isJsonType(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === 'application/json') return true
  const semicolon = contentType.indexOf(';')
  const type = (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
  return type === 'application/json' || (type.startsWith('application/') && type.endsWith('+json'))
}

const decodeErrors: DecodeErrors = {
  tooLarge: 'request_too_large',
  malformed: 'bad_request',
  unknown: 'unsupported_encoding',
}

async function readBody({ body, facts }: Exchange, maxBytes: number): Promise<Body> {
  const encoding = encodingOf(facts.request.headers)
  try {
    const bytes = await readAll(body, maxBytes, 'request_too_large')
    if (encoding === undefined) return { kind: 'body', bytes }
    return { kind: 'body', bytes: await decode(bytes, encoding, maxBytes, decodeErrors) }
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'request_too_large') {
      const message = `request body is larger than ${maxBytes} bytes`
      return { kind: 'refused', refusal: { status: 413, code: 'request_body_too_large', message } }
    }
    if (error instanceof GatewayError && error.code === 'bad_request') {
      return {
        kind: 'refused',
        refusal: { status: 400, code: 'request_body_decode_failed', message: error.message },
      }
    }
    throw error
  }
}

function encodingOf(headers: Headers): string | undefined {
  const encoding = firstHeader(headers, 'content-encoding')
  return isPlain(encoding) ? undefined : encoding
}

function readJson(bytes: Buffer): Read {
  if (!isUtf8(bytes)) return invalidBody('request body is not valid UTF-8')
  const json = readJsonObject(bytes.toString())
  switch (json.kind) {
    case 'object':
      return { kind: 'json', json }
    case 'invalid':
      return invalidBody(`request body is ${json.message}`)
    case 'duplicate':
      return invalidBody(`duplicate key "${json.path.slice(0, 200)}"`, json.path.slice(0, 200))
  }
}

function invalidBody(message: string, param?: string): Read {
  const refusal: Refusal = { status: 400, code: 'invalid_request_body', message }
  if (param !== undefined) refusal.param = param
  return { kind: 'refused', refusal }
}

/** Whether an answer streams decides how it is counted, so nothing an upstream might read differently goes through. */
function streamMistake(endpoint: Endpoint, body: JsonObject): Refusal | undefined {
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

function invalidField(param: string, message: string): Refusal {
  return { status: 400, code: 'invalid_request_body', message, param }
}

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
