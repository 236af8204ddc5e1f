import { parseExactObject } from '../exact-json.ts'
import { readUpstreamError, type UpstreamError } from '../upstream-error.ts'

/** Status of an exception in a stream, by its name; those of the service are in lower camel case. */
const statusByException: Readonly<Record<string, number>> = {
  accessdenied: 403,
  internalserver: 500,
  modelerror: 502,
  modelnotready: 429,
  modelstreamerror: 502,
  modeltimeout: 504,
  resourcenotfound: 404,
  servicequotaexceeded: 429,
  serviceunavailable: 529,
  throttling: 429,
  validation: 400,
}

/** Errors outside of streams have their name in a header. */
const codeByStatus: Readonly<Record<number, string>> = {
  400: 'validation_error',
  403: 'access_denied',
  404: 'not_found',
  429: 'throttled',
  503: 'service_unavailable',
}

/** Advice for errors whose text has none. */
const advice: readonly (readonly [status: number, text: RegExp, advice: string])[] = [
  [400, /on-demand throughput/i, 'use the id of an inference profile, such as us.<model>, as the model'],
  [403, /expired/i, "renew the gateway's keys of AWS"],
  [403, /signature|security token/i, "check the gateway's keys of AWS, the region and the clock"],
  [
    403,
    /./,
    'allow bedrock:InvokeModel for the identity of the gateway, and access to the model in the region',
  ],
  [404, /./, 'check the id of the model and the region'],
  [429, /./, 'retry later, use an inference profile of several regions, or request a higher quota'],
]

/** An error of Amazon Bedrock, with advice. The text of the service is preserved. */
export function readBedrockError(status: number, body: string): UpstreamError {
  const read = readUpstreamError(status, body)
  const { Message: message } = parseExactObject(body) ?? {}
  const code = read.code === 'upstream_error' ? (codeByStatus[status] ?? read.code) : read.code
  const error = { ...read, code }
  return withAdvice(typeof message === 'string' ? { ...error, message } : error)
}

/** An exception in a stream. */
export function readBedrockException(exception: string, message: string): UpstreamError {
  const name = exception.toLowerCase().replace(/exception$/, '')
  return withAdvice({ status: statusByException[name] ?? 502, message, code: exception })
}

function withAdvice(error: UpstreamError): UpstreamError {
  const found = advice.find(([status, text]) => status === error.status && text.test(error.message))
  if (found === undefined) return error
  return { ...error, message: `${error.message.replace(/[.\s]+$/, '')}: ${found[2]}` }
}
