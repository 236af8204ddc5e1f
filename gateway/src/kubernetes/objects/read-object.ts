import { isJsonObject } from '../../lib/json/json.ts'
import { check } from '../../schema/check.ts'
import { formatPath } from '../../schema/path.ts'
import { printable } from '../../schema/printable.ts'
import { apiVersionOf, gatewayApiGroup, ownGroup, type ReadKind, readKinds } from './kinds.ts'
import type { ObjectMeta } from './meta.ts'
import type { InvalidObject, ReadObject } from './object-set.ts'
import { readMeta } from './read-meta.ts'
import { kindSchemas } from './schemas/schemas.ts'

export type ReadOutcome =
  | { readonly kind: 'object'; readonly object: ReadObject }
  /** An object of a kind that translations read, which violates its schema. */
  | { readonly kind: 'invalid'; readonly invalid: InvalidObject }
  /** An object of a kind that translations do not read. */
  | { readonly kind: 'other'; readonly description: string }
  /** Not an object of the API, or one without a usable name. */
  | { readonly kind: 'unusable'; readonly mistakes: readonly string[] }

const maxMistakes = 20
const maxShown = 100

/**
 * Reads an object of the API, from a manifest or a watch. Absent fields stay absent, except for the
 * namespace of namespaced kinds, `default`. Unknown fields of kinds of Kubernetes and the Gateway API are
 * ignored, those of the gateway's own kinds are mistakes. Never throws. Mistakes omit secrets.
 */
export function readObject(value: unknown): ReadOutcome {
  if (!isJsonObject(value)) return unusable('an object of the API must be a mapping with apiVersion and kind')
  const { apiVersion, kind } = value
  if (typeof apiVersion !== 'string' || apiVersion === '') return unusable('apiVersion: must be a string')
  if (typeof kind !== 'string' || kind === '') return unusable('kind: must be a string')
  const [group, version] = splitVersion(apiVersion)
  const name = isReadKind(kind) && readKinds[kind].group === group ? kind : undefined
  if (name === undefined) return otherKind(group, apiVersion, kind)
  const { metadata, mistakes } = readMeta(value['metadata'], readKinds[name].isNamespaced)
  if (metadata === undefined) return { kind: 'unusable', mistakes }
  // Earlier versions of the Gateway API have the same fields.
  if (version !== readKinds[name].version && group !== gatewayApiGroup) {
    return invalid(name, metadata, value, [`apiVersion: must be ${apiVersionOf(readKinds[name])}`])
  }
  if (mistakes.length > 0) return invalid(name, metadata, value, mistakes)
  return readContent(name, metadata, value, apiVersion)
}

function readContent(kind: ReadKind, metadata: ObjectMeta, value: Fields, apiVersion: string): ReadOutcome {
  const { of, schema } = kindSchemas[kind]
  const unknown = readKinds[kind].group === ownGroup ? unknownFields(value) : []
  const content = of === 'spec' ? value['spec'] : withoutMembers(value, ownMembers)
  if (!isWithin(content, maxDepth)) {
    const mistake = `${of === 'spec' ? 'spec' : kind}: must have at most ${maxDepth} nested levels`
    return invalid(kind, metadata, { spec: withoutDeepMembers(content) }, [mistake])
  }
  const checked = checkContent(schema, content)
  const prefix = of === 'spec' ? 'spec' : ''
  if (checked.kind === 'mistakes' || unknown.length > 0) {
    const found = checked.kind === 'mistakes' ? checked.mistakes : []
    const lines = found.slice(0, maxMistakes).map(({ path, message }) => {
      const place = formatPath(prefix === '' ? path : [prefix, ...path])
      return printable(`${place === '' ? '' : `${place}: `}${message}`)
    })
    const more = found.length - lines.length
    return invalid(kind, metadata, value, [
      ...unknown,
      ...lines,
      ...(more > 0 ? [`and ${more} more mistakes`] : []),
    ])
  }
  const head = { apiVersion, kind, metadata }
  const status = value['status']
  return {
    kind: 'object',
    object: objectOf(
      of === 'spec'
        ? { ...head, spec: checked.value, ...(isJsonObject(status) && { status }) }
        : { ...head, ...asFields(checked.value) },
    ),
  }
}

/**
 * Checks a value; if it has mistakes, without its nulls, which the API treats as absent: Go writes them for
 * empty lists. Returns the given value, not a copy.
 */
function checkContent(schema: (typeof kindSchemas)[ReadKind]['schema'], content: unknown) {
  const given = content ?? {}
  const checked = check(schema, given)
  if (checked.kind === 'valid') return { kind: checked.kind, value: given }
  const cleaned = withoutNulls(given, maxDepth)
  if (cleaned === given) return checked
  const again = check(schema, cleaned)
  return again.kind === 'valid' ? { kind: again.kind, value: cleaned } : again
}

/** Values of translations are read recursively: one deep object must not stop the others. */
const maxDepth = 100

function isWithin(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth === 0) return false
  return Object.values(value).every((member) => isWithin(member, depth - 1))
}

/** The members of a value that are not too deep: the targets of a policy stay readable. */
function withoutDeepMembers(value: unknown): unknown {
  return Object.fromEntries(
    Object.entries(value ?? {}).filter(([, member]) => isWithin(member, maxDepth - 1)),
  )
}

function withoutNulls(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth === 0) return value
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value
    const cleaned = items.map((item) => withoutNulls(item, depth - 1))
    return cleaned.every((item, index) => item === items[index]) ? value : cleaned
  }
  let same = true
  const entries: [string, unknown][] = []
  for (const [key, entry] of Object.entries(value)) {
    if (entry === null) same = false
    else {
      const cleaned = withoutNulls(entry, depth - 1)
      same &&= cleaned === entry
      entries.push([key, cleaned])
    }
  }
  return same ? value : Object.fromEntries(entries)
}

const ownMembers: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata'])
const members: ReadonlySet<string> = new Set([...ownMembers, 'spec', 'status'])

function unknownFields(value: Fields): string[] {
  return Object.keys(value)
    .filter((key) => !members.has(key))
    .slice(0, maxMistakes)
    .map((key) =>
      printable(`unknown key \`${key.slice(0, maxShown)}\`; known here: ${[...members].join(', ')}`),
    )
}

function withoutMembers(value: Fields, names: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !names.has(key)))
}

function otherKind(group: string, apiVersion: string, kind: string): ReadOutcome {
  const description = printable(`${kind.slice(0, maxShown)} of ${apiVersion.slice(0, maxShown)}`)
  // A misspelled policy must not be skipped.
  if (group === ownGroup) return unusable(`kind: ${description} is not a kind of the gateway`)
  return { kind: 'other', description }
}

function invalid(
  kind: ReadKind,
  metadata: ObjectMeta,
  { spec }: Fields,
  mistakes: readonly string[],
): ReadOutcome {
  return { kind: 'invalid', invalid: { kind, metadata, mistakes, spec } }
}

function unusable(mistake: string): ReadOutcome {
  return { kind: 'unusable', mistakes: [mistake] }
}

/** Group and version of `apiVersion`; the core group is empty. */
function splitVersion(apiVersion: string): readonly [group: string, version: string] {
  const slash = apiVersion.indexOf('/')
  return slash === -1 ? ['', apiVersion] : [apiVersion.slice(0, slash), apiVersion.slice(slash + 1)]
}

function isReadKind(kind: string): kind is ReadKind {
  return Object.hasOwn(readKinds, kind)
}

type Fields = { readonly [field: string]: unknown }

function asFields(value: unknown): Fields {
  return isJsonObject(value) ? value : {}
}

/** The guard of this file: the schema of the kind has accepted the content. */
function objectOf(value: unknown): ReadObject {
  return value as ReadObject
}
