import {
  type ApiKeyRecord,
  allDigests,
  apiKeyRecordSchema,
  checkRecord,
  keyHashOf,
  recordDigest,
} from '../../../../../policies/api-key/record.ts'
import { check } from '../../../../../schema/check.ts'
import type { Path } from '../../../../../schema/path.ts'
import type { Secret } from '../../../../objects/core.ts'
import { keyOf } from '../../../../objects/meta.ts'
import { secretKeys, secretText } from '../../../../objects/secret-text.ts'
import { fileValue } from '../../../../own-kinds/enumerations.ts'
import type { ApiKeyAuthentication } from '../../../../own-kinds/gateway-policy/authentication.ts'
import type { Lookups } from '../../lookups.ts'
import { type FieldKind, fieldOf, type Unresolved } from '../field.ts'
import { secretProblem } from '../secret-problem.ts'

const path: Path = ['traffic', 'apiKeyAuthentication']

/** `traffic.apiKeyAuthentication`. */
export const apiKeyField: FieldKind = {
  path: 'traffic.apiKeyAuthentication',
  traffic: ['http', 'llm', 'mcp'],
  levels: 'mostSpecific',
  translate({ traffic }, lookups) {
    const written = traffic?.apiKeyAuthentication
    if (written === undefined) return undefined
    const { mode, location } = written
    const { secrets, problem } = secretsOf(written, lookups)
    const { keys, unusable } = readKeys(secrets)
    const apiKey = { keys, ...(mode && { mode: fileValue(mode) }), ...(location && { location }) }
    const field = fieldOf({ apiKey }, { place: ['apiKey'], path })
    return { ...field, unresolved: unusable, ...problem }
  },
}

function secretsOf({ secretRef, secretSelector }: ApiKeyAuthentication, lookups: Lookups) {
  if (secretRef === undefined) return { secrets: lookups.secretsWith(secretSelector.matchLabels) }
  const found = lookups.secret(secretRef)
  return found.kind === 'found'
    ? { secrets: [found.object] }
    : { secrets: [], problem: secretProblem(found, [...path, 'secretRef']) }
}

/** Reads the keys of Secrets. An unusable entry is omitted: its key is not accepted. */
function readKeys(secrets: readonly Secret[]) {
  const keys: ApiKeyRecord[] = []
  const unusable: Unresolved[] = []
  const digests = new Set<string>()
  for (const secret of secrets) {
    for (const entry of secretKeys(secret)) {
      const read = readKey(entry, (secretText(secret, entry) ?? '').trim())
      const own = read.kind === 'key' ? allDigests(read.record) : []
      const isRepeated = own.some((digest) => digests.has(digest))
      const problem = read.kind === 'key' ? isRepeated && 'another entry has the same key' : read.problem
      if (read.kind === 'key' && problem === false) {
        for (const digest of own) digests.add(digest)
        keys.push(read.record)
      } else {
        const message = `Secret ${keyOf(secret)}, entry ${entry}: ${problem}`
        unusable.push({ reason: 'InvalidRef', message: `traffic.apiKeyAuthentication: ${message}` })
      }
    }
  }
  return { keys, unusable }
}

type ReadKey =
  | { readonly kind: 'key'; readonly record: ApiKeyRecord }
  | { readonly kind: 'unusable'; readonly problem: string }

/** Reads a key as plain text or as a record in JSON. Keys become hashes, and problems omit them. */
function readKey(entry: string, text: string): ReadKey {
  if (text === '') return { kind: 'unusable', problem: 'must not be empty' }
  const value = text.startsWith('{') ? parsed(text) : { key: text }
  if (value === undefined) return { kind: 'unusable', problem: 'must be a key or a JSON object' }
  const checked = check(apiKeyRecordSchema, value)
  if (checked.kind === 'mistakes')
    return { kind: 'unusable', problem: 'must be a key record with key or keyHash' }
  const problems: string[] = []
  checkRecord(checked.value, (_, message) => problems.push(message))
  const [problem] = problems
  if (problem !== undefined) return { kind: 'unusable', problem }
  return { kind: 'key', record: hashed(checked.value, entry) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The record without its plain text. `apiKey.name` defaults to the name of the entry. */
function hashed(record: ApiKeyRecord, entry: string): ApiKeyRecord {
  const { key: _, keyHash: __, metadata, ...rest } = record
  return { keyHash: keyHashOf(recordDigest(record) ?? ''), metadata: { name: entry, ...metadata }, ...rest }
}
