import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'

/** Keys of the items of lists that are merged by key; the key of `ports` depends on the item. */
const mergeKeys: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  initContainers: ['name'],
  volumes: ['name'],
  env: ['name'],
  imagePullSecrets: ['name'],
  volumeMounts: ['mountPath'],
  volumeDevices: ['devicePath'],
  hostAliases: ['ip'],
  topologySpreadConstraints: ['topologyKey', 'whenUnsatisfiable'],
}

const directive = '$patch'

/**
 * Merges a strategic merge patch of Kubernetes into an object: maps by field, lists of the fields above by
 * key, other lists as a whole. `null` removes a field; `$patch: delete` removes an item or field, and
 * `$patch: replace` replaces a map or list.
 */
export function applyPatch(base: JsonObject, patch: JsonObject): JsonObject {
  return mergeObjects(base, patch, 'apply')
}

/** Combines two patches into one with the effect of both; the order of items may differ. */
export function combinePatches(first: JsonObject, second: JsonObject): JsonObject {
  return mergeObjects(first, second, 'combine')
}

/** Paths of directives in a patch that are not supported. */
export function unknownDirectives(patch: unknown, path: string): string[] {
  if (Array.isArray(patch)) {
    return patch.flatMap((item, index) => unknownDirectives(item, `${path}[${index}]`))
  }
  if (!isJsonObject(patch)) return []
  return Object.entries(patch).flatMap(([key, value]) => {
    const here = `${path}.${key}`
    if (!key.startsWith('$')) return unknownDirectives(value, here)
    return key === directive && (value === 'delete' || value === 'replace') ? [] : [here]
  })
}

/** With `combine`, directives stay in the result. */
type Mode = 'apply' | 'combine'

function mergeObjects(base: JsonObject, patch: JsonObject, mode: Mode): JsonObject {
  if (patch[directive] === 'replace') return mode === 'combine' ? patch : withoutDirectives(patch)
  const merged = new Map(Object.entries(base))
  for (const [key, value] of Object.entries(patch)) {
    if (key === directive) {
      if (mode === 'combine') merged.set(key, value)
    } else if (mode === 'apply' && isDeletion(value)) merged.delete(key)
    else merged.set(key, mergeValues(key, { before: merged.get(key), after: value }, mode))
  }
  return Object.fromEntries(merged)
}

function isDeletion(value: unknown): boolean {
  return value === null || (isJsonObject(value) && value[directive] === 'delete')
}

function mergeValues(
  field: string,
  { before, after }: { before: JsonValue | undefined; after: JsonValue },
  mode: Mode,
): JsonValue {
  if (isJsonObject(after)) {
    // A map that a patch deletes is created again by the next one, without the fields it had.
    if (isDeletion(after)) return after
    if (mode === 'combine' && isDeletion(before)) return { ...after, [directive]: 'replace' }
    return mergeObjects(isJsonObject(before) ? before : {}, after, mode)
  }
  if (Array.isArray(after) && Array.isArray(before)) return mergeLists(field, before, after, mode)
  return mode === 'apply' && Array.isArray(after) ? newItems(after) : after
}

function mergeLists(
  field: string,
  before: readonly JsonValue[],
  after: readonly JsonValue[],
  mode: Mode,
): JsonValue[] {
  const isReplaced = after.some((item) => isJsonObject(item) && isReplacement(item))
  if (isReplaced || !after.every((item) => identityOf(field, item) !== undefined)) {
    return mode === 'combine' ? [...after] : newItems(after)
  }
  const merged = new Map<string, JsonValue>()
  for (const item of before) merged.set(identityOf(field, item) ?? `other ${merged.size}`, item)
  for (const item of after) {
    const identity = identityOf(field, item) ?? ''
    const known = merged.get(identity)
    if (!isJsonObject(item)) continue
    if (item[directive] === 'delete') {
      if (mode === 'combine') merged.set(identity, item)
      else merged.delete(identity)
    } else if (mode === 'combine' && known !== undefined && isDeletion(known)) {
      merged.set(identity, { ...item, [directive]: 'replace' })
    } else merged.set(identity, mergeObjects(isJsonObject(known) ? known : {}, item, mode))
  }
  return [...merged.values()]
}

/** `{ $patch: replace }` as an item replaces the list by the other items. */
function isReplacement(item: JsonObject): boolean {
  return item[directive] === 'replace' && Object.keys(item).length === 1
}

/** Undefined for items of lists that are merged as a whole. */
function identityOf(field: string, item: unknown): string | undefined {
  if (!isJsonObject(item)) return undefined
  const keys = field === 'ports' ? portKeys(item) : mergeKeys[field]
  if (keys === undefined || item[keys[0] ?? ''] === undefined) return undefined
  return JSON.stringify(keys.map((key) => item[key] ?? (key === 'protocol' ? 'TCP' : null)))
}

/** Ports of containers or of a Service. */
function portKeys(item: JsonObject): readonly string[] {
  return [item['containerPort'] === undefined ? 'port' : 'containerPort', 'protocol']
}

function newItems(items: readonly JsonValue[]): JsonValue[] {
  return items
    .filter((item) => !isDeletion(item) && !(isJsonObject(item) && isReplacement(item)))
    .map(withoutDirectivesIn)
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(patch).flatMap(([key, value]) =>
      key === directive || isDeletion(value) ? [] : [[key, withoutDirectivesIn(value)]],
    ),
  )
}

function withoutDirectivesIn(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return newItems(value)
  return isJsonObject(value) ? withoutDirectives(value) : value
}
