import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { FindAmbiguousName } from '../../../lib/json/names.ts'
import type { ReadJson } from '../../../lib/json/read.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { requestPath } from '../attempt/provider-request.ts'
import type { ClientEndpoint, Endpoints } from './endpoints.ts'

type JsonBody = { kind: 'json'; json: JsonText } | { kind: 'refused'; refusal: Refusal }

export function validateJson(json: ReadJson, findAmbiguousName: FindAmbiguousName): JsonBody {
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
export function streamIssue(endpoint: ClientEndpoint, body: JsonObject): Refusal | undefined {
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
export function backgroundIssue(
  exchange: Exchange,
  body: JsonObject,
  { endpoints }: { endpoints: Pick<Endpoints, 'match'> },
): Refusal | undefined {
  const { background, max_output_tokens: limit } = body
  if (background === undefined || background === null || background === false) return undefined
  if (background !== true) return invalidField('background', 'background must be true or false')
  const { kind } = endpoints.match(`${requestPath(exchange)}/resp_id`)
  if (kind !== 'passthrough' && kind !== 'stored') {
    return invalidField(
      'background',
      'background must be false: the route has no path to fetch the response, such as one of the type responses',
    )
  }
  if (typeof limit === 'number' && Number.isSafeInteger(limit) && limit > 0) return undefined
  return invalidField(
    'max_output_tokens',
    'max_output_tokens must be set with background: its maximum is charged',
  )
}

export function invalidField(param: string | undefined, message: string): Refusal {
  return { status: 400, code: 'invalid_request_body', message, ...(param !== undefined && { param }) }
}

/** A request without `content-type` counts as JSON, because plain HTTP clients omit it. */
export const notJson: Refusal = {
  status: 415,
  code: 'unsupported_content_type',
  message: 'content-type must be application/json',
}
