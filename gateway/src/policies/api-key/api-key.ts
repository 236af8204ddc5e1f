import type { AuthenticationCheck, AuthenticationOutcome } from '../../identity/authentication.ts'
import {
  checkLocation,
  compileLocation,
  defaultLocations,
  locationSchema,
} from '../../identity/credential-location.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange, ModelAccess } from '../../pipeline/exchange.ts'
import { enumeration, type Infer, list, object, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { createKeyIndex } from './key-index.ts'
import { type ApiKeyEntry, apiKeyRecordSchema, checkRecord, digestOf, recordDigest } from './record.ts'

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
    const digest = record.key === '' ? undefined : recordDigest(record)
    if (digest === undefined) return
    const first = seen.get(digest)
    if (first === undefined) seen.set(digest, index)
    else report(['keys', index], `the same key is in keys[${first}] already`)
  })
  if (config.location !== undefined) {
    checkLocation(config.location, (path, message) => report(['location', ...path], message))
  }
}

/**
 * Compiles authentication by virtual key. Writes `facts.apiKey`, `auth.models` and
 * `auth.keyGroup`. After an earlier check, its key remains, and both keys must allow a model.
 *
 * Reads locations until one has a known key. The caller then clears all of them, so that a second credential
 * in another location never reaches an upstream unchecked. `scope` names the scope of the keys.
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
    for (const location of locations) {
      const key = location.read(facts)
      if (key === undefined) continue
      found = true
      const entry = index.find(digestOf(key))
      if (entry === undefined) continue
      admit(exchange, entry)
      return { kind: 'accepted', credential: key, locations }
    }
    if (mode === 'permissive' || (mode === 'optional' && !found)) return undefined
    return unauthorized(exchange, found ? 'invalid credentials' : 'no API Key found')
  }
}

function admit(exchange: Exchange, { facts, models, group }: ApiKeyEntry) {
  const { models: known } = exchange.auth
  if (exchange.facts.apiKey === undefined) {
    exchange.facts.apiKey = facts
    exchange.auth.keyGroup = group
  }
  if (models === undefined) return
  exchange.auth.models = known === undefined ? models : intersectModels(known, models)
}

/** The models that two keys of one request permit. */
function intersectModels(one: ModelAccess, other: ModelAccess): ModelAccess {
  return {
    allows: (model) => one.allows(model) && other.allows(model),
    patterns: one.patterns.filter(other.allows),
  }
}

/** A 401 requires a challenge (RFC 9110 section 15.5.2). */
const challenge = { 'www-authenticate': 'Bearer' }

function unauthorized(exchange: Exchange, reason: string): AuthenticationOutcome {
  exchange.log.refusedBy = `api-key: ${reason}`
  const reply = refuse(exchange, {
    status: 401,
    code: 'invalid_api_key',
    message: `api key authentication failure: ${reason}`,
    headers: challenge,
  })
  return { kind: 'refused', reply }
}
