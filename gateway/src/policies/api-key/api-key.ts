import { SecretText } from '../../cel/secret-text.ts'
import type { AuthenticationCheck, AuthenticationOutcome } from '../../identity/authentication.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { KeyLimit } from '../../pipeline/keys/key-limits.ts'
import { enumeration, type Infer, list, object, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import {
  checkLocation,
  compileLocation,
  defaultLocations,
  locationSchema,
} from '../../upstream/credentials/credential-location.ts'
import type { ApiKeyEntry } from './entry.ts'
import { createKeyIndex } from './key-index.ts'
import { intersectAccess } from './name-patterns.ts'
import { allDigests, apiKeyRecordSchema, checkRecord, digestOf } from './record.ts'

/** `llm.policies.apiKey` (specification, "Virtual API keys"). */
export const apiKeySchema = object(
  {
    keys: list(apiKeyRecordSchema, {
      doc: 'Virtual keys. Keys stored in the database are added to this list.',
    }),
    mode: optional(
      enumeration(['strict', 'optional', 'permissive'], {
        doc: 'Authentication mode: `strict` requires a known key, `optional` also admits requests without a key, `permissive` admits all requests.',
        default: 'strict',
      }),
    ),
    location: optional(locationSchema),
  },
  { doc: 'Authentication with virtual keys, which clients use instead of provider credentials.' },
)

export type ApiKeyConfig = Infer<typeof apiKeySchema>

/** Reports malformed records, duplicate keys and invalid key locations. */
export function checkApiKey(config: ApiKeyConfig, report: ReportIssue) {
  const seen = new Map<string, number>()
  config.keys.forEach((record, index) => {
    checkRecord(record, (path, message) => report(['keys', index, ...path], message))
    const digests = record.key === '' ? [] : allDigests(record)
    for (const digest of digests) {
      const first = seen.get(digest)
      if (first === undefined) seen.set(digest, index)
      else report(['keys', index], `the same key is in keys[${first}] already`)
    }
  })
  if (config.location !== undefined) {
    checkLocation(config.location, (path, message) => report(['location', ...path], message))
  }
}

/**
 * Compiles authentication by virtual key. Writes `facts.apiKey` and the slots of `auth`. After an earlier
 * check, its key remains, and the restrictions of both apply.
 *
 * Reads locations until one has a known key. The caller then clears all of them, so that a second credential
 * in another location never reaches an upstream unchecked. A disabled or expired key is refused in every
 * mode. `scope` names the scope of the keys.
 */
export function compileApiKey(
  config: ApiKeyConfig,
  context: CompileContext,
  scope: string,
): AuthenticationCheck {
  const index = createKeyIndex(config.keys, context, scope)
  const locations = config.location === undefined ? defaultLocations : [compileLocation(config.location)]
  const mode = config.mode ?? 'strict'

  return (exchange) => {
    const { facts } = exchange
    let found = false
    let ended: ApiKeyEntry | undefined
    for (const location of locations) {
      const key = location.read(facts)
      if (key === undefined) continue
      found = true
      const entry = index.find(digestOf(key))
      if (entry === undefined) continue
      if (entry.validUntil !== Number.POSITIVE_INFINITY && context.clock.now() >= entry.validUntil) {
        ended ??= entry
        continue
      }
      admit(exchange, entry, key)
      return { kind: 'accepted', credential: key, locations }
    }
    if (ended !== undefined) return unauthorized(exchange, invalid, `${ended.ending} key ${ended.id}`)
    if (mode === 'permissive' || (mode === 'optional' && !found)) return undefined
    return found ? unauthorized(exchange, invalid, invalid) : unauthorized(exchange, missing, missing)
  }
}

/** The first key of a request, of its most specific scope, is its identity. Every key restricts it. */
function admit({ facts, auth }: Exchange, entry: ApiKeyEntry, key: string) {
  const { models, targets, limits, budgets, validUntil } = entry
  if (facts.apiKey === undefined) {
    facts.apiKey = entry.facts
    facts.key = new SecretText(key)
    auth.keyGroup = entry.group
  }
  if (models !== undefined) auth.models = intersectAccess(auth.models, models)
  if (targets !== undefined) auth.targets = intersectAccess(auth.targets, targets)
  if (limits !== undefined) auth.limits = joinLimits(auth.limits, limits)
  if (budgets !== undefined)
    auth.budgets = auth.budgets === undefined ? budgets : auth.budgets.concat(budgets)
  if (validUntil < (auth.expiresAt ?? Number.POSITIVE_INFINITY)) auth.expiresAt = validUntil
}

/** The limits of both keys. A key that two scopes have counts once. */
function joinLimits(
  known: readonly KeyLimit[] | undefined,
  limits: readonly KeyLimit[],
): readonly KeyLimit[] {
  if (known === undefined) return limits
  return known.concat(limits.filter(({ bucket }) => known.every((limit) => limit.bucket !== bucket)))
}

/** A 401 requires a challenge (RFC 9110 section 15.5.2). */
const challenge = { 'www-authenticate': 'Bearer' }
const invalid = 'invalid credentials'
const missing = 'no API Key found'

/** Refuses with a message for the client, and a reason for the log. */
function unauthorized(exchange: Exchange, message: string, reason: string): AuthenticationOutcome {
  exchange.log.refusedBy = `api-key: ${reason}`
  const reply = refuse(exchange, {
    status: 401,
    code: 'invalid_api_key',
    message: `api key authentication failure: ${message}`,
    headers: challenge,
  })
  return { kind: 'refused', reply }
}
