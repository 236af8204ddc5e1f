import { isDeepStrictEqual } from 'node:util'

/** An object of the double of the API server. */
export type Stored = { apiVersion: string; kind: string; metadata: Meta; [field: string]: unknown }

export type Meta = {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: { uid: string }[]
  managedFields?: unknown
  [field: string]: unknown
}

type Plain = Record<string, unknown>

export function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Server-side apply with one manager in mind: maps merge, lists are replaced as a whole (as those with
 * `listType: atomic`), and fields of the manager's previous apply that are absent now are removed.
 */
export function applyFields(live: Plain, before: Plain, next: Plain): Plain {
  const result: Plain = { ...live }
  for (const field of Object.keys(before)) if (!(field in next)) delete result[field]
  for (const [field, value] of Object.entries(next)) {
    const current = live[field]
    const previous = before[field]
    result[field] =
      isPlain(value) && isPlain(current)
        ? applyFields(current, isPlain(previous) ? previous : {}, value)
        : value
  }
  return result
}

/** Whether two objects are equal apart from what the server sets at each write. */
export function isUnchanged(a: Stored, b: Stored): boolean {
  return isDeepStrictEqual(withoutVersion(a), withoutVersion(b))
}

function withoutVersion({ metadata, ...rest }: Stored): Plain {
  const { resourceVersion: _, managedFields: __, generation: ___, ...others } = metadata
  return JSON.parse(JSON.stringify({ ...rest, metadata: others }))
}

/** Whether a selector such as `a=b,c!=d,e` accepts the values. */
export function selects(selector: string | null, read: (name: string) => string | undefined): boolean {
  if (selector === null || selector === '') return true
  return selector.split(',').every((term) => {
    const [, name = '', operator, value] = /^([^!=]+)(?:(!=|==|=)(.*))?$/.exec(term.trim()) ?? []
    if (operator === undefined) return read(name) !== undefined
    return operator === '!=' ? read(name) !== value : read(name) === value
  })
}
