import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import type { Kind } from '../kinds.ts'
import { maskRecord } from '../secrets/secret-paths.ts'

/** A changed member of a value, before and after; secrets are masked and long values truncated. */
export type ChangedField = { readonly field: string; readonly before?: string; readonly after?: string }

const maxChangedFields = 50
const maxShownChars = 200

/**
 * Members that differ between two values, for the audit log. A value that is not an object counts as one
 * member.
 */
export function changedFields(
  { kind, name }: { kind: Kind; name?: string | undefined },
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): ChangedField[] {
  const [one, other] = [before, after].map((value) => membersOf(value))
  const [shownOne, shownOther] = [before, after].map((value) =>
    membersOf(value === undefined ? undefined : maskRecord(kind, name, value)),
  )
  return [...new Set([...Object.keys(one ?? {}), ...Object.keys(other ?? {})])]
    .filter((field) => JSON.stringify(one?.[field]) !== JSON.stringify(other?.[field]))
    .slice(0, maxChangedFields)
    .map((field) => ({
      field: field.slice(0, 100),
      ...textAs('before', shownOne?.[field]),
      ...textAs('after', shownOther?.[field]),
    }))
}

function membersOf(value: JsonValue | undefined): JsonObject {
  if (isJsonObject(value)) return value
  return value === undefined ? {} : { value }
}

function textAs(when: 'before' | 'after', value: JsonValue | undefined): Partial<ChangedField> {
  if (value === undefined) return {}
  const text = JSON.stringify(value)
  return { [when]: text.length > maxShownChars ? `${text.slice(0, maxShownChars)}…` : text }
}
