import { hash } from 'node:crypto'
import { exactText } from '../lib/json/exact.ts'
import type { ExactJsonObject, ExactJsonValue, JsonObject } from '../lib/json/json.ts'
import type { Exchange, SourceFacts } from '../pipeline/exchange.ts'

/**
 * Identity of a request from its token, password and key, else from its client certificate; empty without any
 * of them. A certificate beside another identity may be that of a proxy.
 */
export function ownerOf({ facts: { jwt, basicAuth, apiKey, source } }: Pick<Exchange, 'facts'>): string {
  if (basicAuth !== undefined) return `${basicAuth.username}:${ownerText(jwt, apiKey)}`
  if (jwt === undefined && apiKey === undefined) return certificateOwner(source)
  if (jwt === undefined) return ownerText(undefined, apiKey)
  if (apiKey !== undefined) return ownerText(jwt, apiKey)
  const known = ownersByClaims.get(jwt)
  if (known !== undefined) return known
  const owner = ownerText(jwt, undefined)
  ownersByClaims.set(jwt, owner)
  return owner
}

/** Owner by claims: a valid token has the same claims object for each request. */
const ownersByClaims = new WeakMap<ExactJsonObject, string>()

/** Owner by connection, whose facts are the same object for each request. */
const ownersBySource = new WeakMap<SourceFacts, string>()

function certificateOwner(source: SourceFacts): string {
  if (source.certificate === undefined) return ''
  const known = ownersBySource.get(source)
  if (known !== undefined) return known
  const { certificate, issuer, subject, subjectAltNames = [] } = source
  const hasName = subject !== undefined && subject + subjectAltNames.join('') !== ''
  // Names outlive renewals of the certificate.
  const name = hasName ? [issuer ?? '', subject, ...subjectAltNames] : [hash('sha256', certificate)]
  const owner = JSON.stringify(['certificate', ...name])
  ownersBySource.set(source, owner)
  return owner
}

/**
 * Unambiguous owner text: each part is JSON with its claim name, so that no `client_id` equals the `sub` of
 * another identity.
 */
function ownerText(jwt: ExactJsonObject | undefined, apiKey: JsonObject | undefined): string {
  return exactText([jwt && identityOf(jwt), apiKey && (apiKey['id'] ?? apiKey)])
}

/**
 * Identity claims, the most specific first. User tokens without `sub` (lightweight tokens of Keycloak)
 * identify a login by `sid`; `client_id` and `azp` are the same for all users of an application.
 */
const identityClaims = ['sub', 'sid', 'client_id', 'azp'] as const

/**
 * False if the identity is only the client of a token or a certificate, which is the same for all users of an
 * application, and without an identity.
 */
export function identifiesUser({ facts: { jwt, basicAuth, apiKey } }: Pick<Exchange, 'facts'>): boolean {
  if (basicAuth !== undefined || apiKey !== undefined) return true
  if (jwt === undefined) return false
  const [, claim] = identityOf(jwt)
  return claim !== 'client_id' && claim !== 'azp'
}

/** Identity of a token; all claims if it has no identity claim. */
function identityOf(jwt: ExactJsonObject): ExactJsonValue[] {
  const issuer = jwt['iss'] ?? null
  for (const claim of identityClaims) {
    const value = jwt[claim]
    if (value !== undefined && value !== null && value !== '') return [issuer, claim, value]
  }
  return [issuer, 'claims', jwt]
}
