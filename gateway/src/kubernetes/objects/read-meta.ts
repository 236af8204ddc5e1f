import { isJsonObject } from '../../lib/json/json.ts'
import type { ObjectMeta, OwnerReference } from './meta.ts'

/** Metadata, with mistakes if it violates the rules of Kubernetes; undefined if no name can be read. */
export type ReadMeta = {
  readonly metadata: ObjectMeta | undefined
  /** One line each, with the path of the value. Values of labels and annotations are omitted. */
  readonly mistakes: readonly string[]
}

const maxNameLength = 253
const maxLabelLength = 63
const labelPattern = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/
const namePattern = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/
const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/
/** Namespace of manifests without one. */
const defaultNamespace = 'default'

/** Reads `metadata` of an object. Fields that no translation reads are dropped. Never throws. */
export function readMeta(value: unknown, isNamespaced: boolean): ReadMeta {
  if (!isJsonObject(value)) return { metadata: undefined, mistakes: ['metadata: must be an object'] }
  const mistakes: string[] = []
  const name = value['name']
  if (typeof name !== 'string' || name.length > maxNameLength || !namePattern.test(name)) {
    const rule = `must be lowercase letters, digits, "-" and ".", at most ${maxNameLength} characters`
    return { metadata: undefined, mistakes: [`metadata.name: ${name === undefined ? 'is required' : rule}`] }
  }
  const namespace = isNamespaced ? (value['namespace'] ?? defaultNamespace) : undefined
  if (namespace !== undefined && !isLabel(namespace)) {
    const rule = `must be lowercase letters, digits and "-", at most ${maxLabelLength} characters`
    return { metadata: undefined, mistakes: [`metadata.namespace: ${rule}`] }
  }
  const metadata: ObjectMeta = {
    name,
    ...(namespace !== undefined && { namespace }),
    ...texts(value, mistakes),
    ...(isWhole(value['generation']) && { generation: value['generation'] }),
    ...textMaps(value, mistakes),
    ...owners(value['ownerReferences']),
  }
  return { metadata, mistakes }
}

function isLabel(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxLabelLength && labelPattern.test(value)
}

function texts(value: Fields, mistakes: string[]) {
  const { uid, resourceVersion } = value
  return {
    ...(typeof uid === 'string' && { uid }),
    ...(typeof resourceVersion === 'string' && { resourceVersion }),
    ...times(value, mistakes),
  }
}

function times(value: Fields, mistakes: string[]) {
  const found: { creationTimestamp?: string; deletionTimestamp?: string } = {}
  for (const field of ['creationTimestamp', 'deletionTimestamp'] as const) {
    const time = value[field]
    if (typeof time === 'string' && timePattern.test(time)) found[field] = time
    // Tools write `creationTimestamp: null`.
    else if (time !== undefined && time !== null) {
      mistakes.push(`metadata.${field}: must be a time such as 2026-01-31T12:00:00Z`)
    }
  }
  return found
}

function textMaps(value: Fields, mistakes: string[]) {
  const found: { labels?: Record<string, string>; annotations?: Record<string, string> } = {}
  for (const field of ['labels', 'annotations'] as const) {
    const map = value[field]
    if (map === undefined || map === null) continue
    if (!isJsonObject(map)) mistakes.push(`metadata.${field}: must be an object`)
    else if (isTextMap(map)) found[field] = map
    else {
      const wrong = Object.keys(map).find((key) => typeof map[key] !== 'string')
      mistakes.push(`metadata.${field}: values must be strings; put the value of ${wrong} in quotes`)
    }
  }
  return found
}

function owners(value: unknown) {
  if (!Array.isArray(value)) return {}
  const ownerReferences = value.filter(isOwner)
  return ownerReferences.length === 0 ? {} : { ownerReferences }
}

function isOwner(value: unknown): value is OwnerReference {
  if (!isJsonObject(value)) return false
  return ['apiVersion', 'kind', 'name', 'uid'].every((field) => typeof value[field] === 'string')
}

function isTextMap(value: Fields): value is Record<string, string> {
  return Object.values(value).every((entry) => typeof entry === 'string')
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value)
}

type Fields = { readonly [field: string]: unknown }
