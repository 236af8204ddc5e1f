import { createHmac } from 'node:crypto'
import type { JsonValue } from '../../lib/json/json.ts'

/** Key of revisions: without it, a revision would confirm guesses of the secrets in a record. */
export type RevisionKey = string

const revisionLength = 20

/** Revision of a record of the file: changes with its value, not with the order of its members. */
export function revisionOf(value: JsonValue, key: RevisionKey): string {
  return createHmac('sha256', key)
    .update(JSON.stringify(sorted(value)))
    .digest('hex')
    .slice(0, revisionLength)
}

/** Revision of a text, such as the configuration file. */
export function textRevision(text: string, key: RevisionKey): string {
  return createHmac('sha256', key).update(text).digest('hex').slice(0, revisionLength)
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, sorted(value[name] ?? null)]))
}
