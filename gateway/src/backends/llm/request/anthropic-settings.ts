import type { JsonObject } from '../../../lib/json/json.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { Refusal } from '../../../pipeline/errors.ts'

/**
 * Version and betas of Anthropic's API: headers of its own service, members of the body in clouds.
 * https://docs.anthropic.com/en/api/beta-headers
 */
export type AnthropicSettings = {
  /** A date; undefined for the version of the service. */
  readonly version: string | undefined
  readonly betas: readonly string[]
  /** Betas of a header are those of an SDK or a tool, of which services ignore unknown ones. */
  readonly source: 'header' | 'body'
}

/** The settings of a request with headers; undefined without betas. */
export function settingsInHeaders(headers: Headers): AnthropicSettings | undefined {
  const betas = firstHeader(headers, 'anthropic-beta')
  if (betas === undefined) return undefined
  const named = betas.split(',').map((beta) => beta.trim())
  return { version: undefined, betas: named.filter((beta) => beta !== ''), source: 'header' }
}

/** The settings in a body of a cloud, without its own versions such as `vertex-2023-10-16`; or a refusal. */
export function settingsInBody(body: JsonObject): AnthropicSettings | Refusal {
  const { anthropic_version: version, anthropic_beta: given } = body
  const betas = given === undefined || given === null ? [] : given
  const isList =
    Array.isArray(betas) && betas.every((beta) => typeof beta === 'string' && /^[\w.-]+$/.test(beta))
  if (!isList) return invalidBetas
  const isDate = typeof version === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(version)
  return {
    version: isDate ? version : undefined,
    betas: betas.filter((beta) => typeof beta === 'string'),
    source: 'body',
  }
}

const invalidBetas: Refusal = {
  status: 400,
  code: 'invalid_request_body',
  message: 'anthropic_beta must be a list of names',
  param: 'anthropic_beta',
}
