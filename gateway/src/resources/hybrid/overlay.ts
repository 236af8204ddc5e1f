import type { ConfigTree } from '../../config/load/validate.ts'
import { lookUp } from '../../lib/bucket-map.ts'
import { type ApiKeyRecord, allDigests } from '../../policies/api-key/record.ts'
import { valueAt } from '../../schema/path.ts'
import { freshSection, type Kind, keyKind, keysPath } from '../kinds.ts'
import { type NamedRecord, nameIn } from './record.ts'
import type { RecordIndex } from './record-index.ts'

export type OverlayResult = {
  /** Configuration of the file with the records of the database. */
  readonly config: ConfigTree
  /**
   * The same without virtual keys: those of the file were validated with it, those of the database one by
   * one.
   */
  readonly keyless: ConfigTree
  /**
   * Records (`<kind> <id>`) that are not active, or only in part, because the file has the same entry or
   * field.
   */
  readonly shadowed: ReadonlySet<string>
  /** Reasons why this configuration must not be active, although it may be valid. */
  readonly refusals: readonly string[]
}

/**
 * Merges the records of the database into the configuration of the file. Entries of the file have precedence
 * and never change. Parts equal to those of `previous`, an earlier result, are the same objects, so that they
 * are not compiled again.
 */
export function overlay(file: ConfigTree, index: RecordIndex, previous?: ConfigTree): OverlayResult {
  const building: OverlayDraft = { root: { ...file }, made: new Set() }
  building.made.add(building.root)
  const shadowed = new Set<string>()
  // Policies come last: they do not create a section, which would have nothing to protect.
  for (const policies of [false, true]) {
    for (const record of index.ordered) {
      if ((record.kind.placement.kind === 'policies') !== policies) continue
      if (!applyRecord(record, file, building)) shadowed.add(shadowKey(record.kind.name, record.id))
    }
  }
  const keyed = applyKeys(index, file, building, shadowed)
  const refusals = [...index.problems.values()]
    .filter(({ blocking }) => blocking)
    .map(({ kind, id, reason }) => `${kind}/${id} in the database cannot be used: ${reason}`)
  if (!keyed) refusals.push(missingKeyPolicy)
  const config = asTree(shareUnchanged(building.root, previous, building.made))
  return { config, keyless: withoutKeys(config), shadowed, refusals }
}

/** Specification, "Errors". */
export const missingKeyPolicy = 'DB-backed API keys require llm.policies.apiKey'

export function shadowKey(kind: string, id: string): string {
  return `${kind} ${id}`
}

/** Whether the file has an entry of this name. */
export function fileDefines(file: ConfigTree, kind: Kind, name: string): boolean {
  const { placement } = kind
  switch (placement.kind) {
    case 'list':
      return namesOf(listAt(file, placement.path), kind).has(name)
    case 'map':
    case 'policies': {
      const holder = valueAt(file, placement.path)
      return isTree(holder) && Object.hasOwn(holder, name) && holder[name] !== undefined
    }
    case 'settings':
    case 'catalog':
    case 'keys':
      return false
  }
}

/** Fields of a settings record that the file sets to another value. */
export function conflictingFields(file: ConfigTree, kind: Kind, value: ConfigTree): string[] {
  const { placement } = kind
  if (placement.kind !== 'settings') return []
  const own = valueAt(file, placement.path)
  if (!isTree(own)) return []
  return placement.fields.filter((field) => {
    if (own[field] === undefined || value[field] === undefined) return false
    return JSON.stringify(own[field]) !== JSON.stringify(value[field])
  })
}

/** Digests of the virtual keys in the file. */
export function fileKeyDigests(file: ConfigTree): ReadonlySet<string> {
  const keys = listAt(file, keysPath)
  const cached = digestsOfLists.get(keys)
  if (cached !== undefined) return cached
  const digests = new Set<string>()
  for (const key of keys) {
    if (isKeyRecord(key)) for (const digest of allDigests(key)) digests.add(digest)
  }
  digestsOfLists.set(keys, digests)
  return digests
}

/** A short test, because the file is valid and may have 100,000 keys. */
function isKeyRecord(value: unknown): value is ApiKeyRecord {
  return isTree(value) && (typeof value['key'] === 'string' || typeof value['keyHash'] === 'string')
}

/** Whether `llm.policies.apiKey` exists, which keys require. */
export function hasKeyPolicy(config: ConfigTree): boolean {
  return isTree(valueAt(config, keysPath.slice(0, -1)))
}

// Results per list. There are few lists, and each exists as long as its configuration.
const digestsOfLists = new WeakMap<readonly unknown[], ReadonlySet<string>>()
const namesOfLists = new WeakMap<readonly unknown[], ReadonlySet<string>>()

const noItems: readonly unknown[] = []

type Draft = Record<string, unknown>
/** `made` are the objects and lists created by this overlay, which may be modified. */
type OverlayDraft = { root: Draft; made: Set<unknown> }

/** False if the file has the entry, so that the record is shadowed, at least in part. */
function applyRecord({ kind, name, item }: NamedRecord, file: ConfigTree, building: OverlayDraft): boolean {
  const { placement } = kind
  if (fileDefines(file, kind, name)) return false
  switch (placement.kind) {
    case 'list':
      writableList(building, placement.path)?.push(item)
      return true
    case 'map':
    case 'policies': {
      const holder = writableObject(building, placement.path, placement.kind === 'map')
      if (holder !== undefined) holder[name] = item
      return true
    }
    case 'settings':
      return applySettings(kind, asTree(item), file, building)
    case 'catalog': {
      const { base, custom } = asTree(item)
      const entries = [base, custom].flatMap((inline) => (inline === undefined ? [] : [{ inline }]))
      // Before those of the file: later catalogs have precedence.
      writableList(building, placement.path)?.unshift(...entries)
      return true
    }
    case 'keys':
      return true
  }
}

function applySettings(kind: Kind, item: ConfigTree, file: ConfigTree, building: OverlayDraft): boolean {
  const { placement } = kind
  const own = valueAt(file, placement.path)
  const holder = writableObject(building, placement.path, true)
  for (const [field, value] of Object.entries(item)) {
    if (holder !== undefined && !(isTree(own) && own[field] !== undefined)) holder[field] = value
  }
  return conflictingFields(file, kind, item).length === 0
}

/** False if there are keys without a key policy. */
function applyKeys(
  index: RecordIndex,
  file: ConfigTree,
  building: OverlayDraft,
  shadowed: Set<string>,
): boolean {
  if (index.keyItems.length === 0) return true
  const policyPath = keysPath.slice(0, -1)
  if (!isTree(valueAt(building.root, policyPath))) return false
  const policy = writableObject(building, policyPath, false)
  const field = keysPath.at(-1)
  if (policy === undefined || field === undefined) return false
  const own = listAt(file, keysPath)
  const items = unshadowed(index, fileKeyDigests(file), shadowed)
  policy[field] = own.length === 0 ? items : own.concat(items)
  building.made.add(policy[field])
  return true
}

/** Items of the keys that the file does not contain. */
function unshadowed(
  index: RecordIndex,
  inFile: ReadonlySet<string>,
  shadowed: Set<string>,
): readonly unknown[] {
  const same = new Set<unknown>()
  for (const digest of inFile) {
    const record = lookUp(index.keysByDigest, digest)
    if (record === undefined) continue
    same.add(record.item)
    shadowed.add(shadowKey(keyKind.name, record.id))
  }
  return same.size === 0 ? index.keyItems : index.keyItems.filter((item) => !same.has(item))
}

/**
 * The object at a path, copied for modification. A missing section is created only on request and if
 * possible.
 */
function writableObject(
  building: OverlayDraft,
  path: readonly string[],
  makesSection: boolean,
): Draft | undefined {
  let here = building.root
  for (const [depth, step] of path.entries()) {
    const value = here[step]
    const isSection = depth === 0 && path.length > 0 && step !== 'gateways' && step !== 'config'
    const start = isTree(value) ? value : isSection ? (makesSection ? freshSection(step) : undefined) : {}
    if (start === undefined) return undefined
    if (!building.made.has(value)) {
      const copy = { ...start }
      building.made.add(copy)
      here[step] = copy
    }
    const next = here[step]
    if (!isDraft(next)) return undefined
    here = next
  }
  return here
}

function writableList(building: OverlayDraft, path: readonly string[]): unknown[] | undefined {
  const holder = writableObject(building, path.slice(0, -1), true)
  const field = path.at(-1)
  if (holder === undefined || field === undefined) return undefined
  const value = holder[field]
  if (Array.isArray(value) && building.made.has(value)) return value
  const list = Array.isArray(value) ? [...value] : []
  building.made.add(list)
  holder[field] = list
  return list
}

/** The new part, or its counterpart in the previous overlay if both are equal. */
function shareUnchanged(next: unknown, previous: unknown, made: ReadonlySet<unknown>): unknown {
  if (!made.has(next)) return next
  if (Array.isArray(next)) {
    const same =
      Array.isArray(previous) &&
      previous.length === next.length &&
      next.every((item, at) => item === previous[at])
    return same ? previous : next
  }
  if (!isDraft(next)) return next
  const before = isTree(previous) ? previous : {}
  const keys = Object.keys(next)
  let same = isTree(previous) && keys.length === Object.keys(before).length
  for (const key of keys) {
    next[key] = shareUnchanged(next[key], before[key], made)
    same &&= next[key] === before[key]
  }
  return same ? previous : next
}

function withoutKeys(config: ConfigTree): ConfigTree {
  if (listAt(config, keysPath).length === 0) return config
  const without = (tree: ConfigTree, [step, ...rest]: readonly string[]): ConfigTree => {
    if (step === undefined) return tree
    return { ...tree, [step]: rest.length === 0 ? [] : without(asTree(tree[step]), rest) }
  }
  return without(config, keysPath)
}

function namesOf(list: readonly unknown[], kind: Kind): ReadonlySet<string> {
  const cached = namesOfLists.get(list)
  if (cached !== undefined) return cached
  const names = new Set<string>()
  for (const item of list) {
    const name = isTree(item) ? nameIn(kind, item) : undefined
    if (name !== undefined) names.add(name)
  }
  if (list !== noItems) namesOfLists.set(list, names)
  return names
}

function listAt(tree: ConfigTree, path: readonly string[]): readonly unknown[] {
  const value = valueAt(tree, path)
  return Array.isArray(value) ? value : noItems
}

export function isTree(value: unknown): value is ConfigTree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isDraft(value: unknown): value is Draft {
  return isTree(value)
}

function asTree(value: unknown): ConfigTree {
  return isTree(value) ? value : {}
}
