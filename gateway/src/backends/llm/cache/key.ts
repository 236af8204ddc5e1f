import { hash } from 'node:crypto'
import type { CelProgram } from '../../../cel/cel.ts'
import { CelEvaluationError } from '../../../cel/failure.ts'
import { exactText } from '../../../lib/json/exact.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { requestPath } from '../attempt/provider-request.ts'
import { clientHeaders } from '../attempt/request-headers.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Call } from '../request/call.ts'
import type { ResponseCache } from './cache.ts'
import { canonicalBody } from './canonical-json.ts'

/**
 * Keys of the response to a call: digests, so that the memory has neither prompts nor credentials. That of
 * the exact body is found in half the time, because most clients repeat requests byte by byte.
 */
export type CacheKeys = { readonly exact: string; canonical(): string }

/**
 * Computes the keys of a call; undefined if it cannot use the cache. Lists are JSON, so that no two inputs
 * have the same text.
 */
export function cacheKeys(
  exchange: Exchange,
  call: Call,
  { target, model }: Candidate,
  cache: ResponseCache,
): CacheKeys | undefined {
  const { json } = call
  if (json === undefined) return undefined
  const owner = cache.key === undefined ? identityOf(exchange) : sharedBy(cache.key, exchange)
  if (owner === undefined) return undefined
  const { facts, forwarding } = exchange
  const head = JSON.stringify([
    cache.fingerprint,
    facts.route?.listener ?? null,
    facts.route?.name ?? null,
    owner,
    call.endpoint,
    requestPath(exchange),
    forwarding?.query ?? facts.request.query,
    model,
    call.hideUsage,
    call.anthropic ?? null,
    target.transform ? [[...target.overrides], [...(target.removed ?? [])]] : null,
    headersOf(clientHeaders(exchange), cache.headers),
  ])
  if (json.large) {
    const key = digestOf(Buffer.concat([Buffer.from(`${head}\nbytes `), json.large.bytes]))
    return { exact: key, canonical: () => key }
  }
  const { text } = json
  let canonical: string | undefined
  return {
    exact: digestOf(`${head}\nexact ${text}`),
    canonical() {
      if (canonical !== undefined) return canonical
      const body = canonicalBody(json)
      canonical = digestOf(body === undefined ? `${head}\nexact ${text}` : `${head}\n${body}`)
      return canonical
    },
  }
}

function digestOf(content: string | Buffer): string {
  return hash('sha256', content, 'base64url')
}

/** Value of the configured key with its type; undefined without one. */
function sharedBy(program: CelProgram, { facts }: Exchange): unknown {
  try {
    const value = program.evaluate(facts)
    return value === null || value === undefined ? undefined : ['key', typeof value, exactText(value)]
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}

/**
 * The identity of the client: virtual key, subject of a token, user name, client certificate. Credentials
 * that the gateway has not verified, and which the provider or a service may, count by their value. Undefined
 * if only an authorization or processing service knows the client, and has reported no metadata.
 */
function identityOf({ facts, auth, extAuthz, isProcessed }: Exchange): unknown {
  const { apiKey, key, jwt, token, basicAuth, source, request } = facts
  const owner: unknown[] = ['client']
  if (apiKey) owner.push(typeof apiKey['id'] === 'string' ? ['id', apiKey['id']] : ['key', key?.reveal()])
  if (jwt) {
    const { sub, iss } = jwt
    owner.push(
      typeof sub === 'string'
        ? ['sub', sub, exactText(iss ?? null)]
        : ['token', auth.token ?? token?.reveal()],
    )
  }
  if (basicAuth) owner.push(['user', basicAuth.username])
  if (source.subject !== undefined)
    owner.push(['certificate', source.issuer, source.subject, source.subjectAltNames])
  for (const name of credentialHeaders) {
    if (request.headers[name] !== undefined) owner.push([name, request.headers[name]])
  }
  if (facts.extAuthz !== undefined) owner.push(['extAuthz', exactText(facts.extAuthz)])
  if (facts.extProc !== undefined) owner.push(['extProc', exactText(facts.extProc)])
  const isAnonymous = owner.length === 1
  return isAnonymous && (extAuthz !== undefined || isProcessed === true) ? undefined : owner
}

/** The last ones are those of gateways in front of providers, which receive them from the client. */
const credentialHeaders = [
  ...['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'cookie'],
  ...['ocp-apim-subscription-key', 'apikey', 'x-auth-token'],
]

/** Prefixes of headers of requests to the providers that change responses. */
const providerHeaders = ['anthropic-', 'openai-', 'x-goog-', 'x-ms-']

function headersOf(headers: Headers, configured: readonly string[]): unknown {
  const found: [string, unknown][] = []
  for (const name in headers) {
    // Credentials count as identities.
    if (name === 'x-goog-api-key' || !providerHeaders.some((prefix) => name.startsWith(prefix))) continue
    found.push([name, headers[name]])
  }
  if (found.length > 1) found.sort(([one], [other]) => (one < other ? -1 : 1))
  for (const name of configured) found.push([`configured ${name}`, headers[name]])
  return found
}
