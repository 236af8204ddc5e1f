import type { ConfigTree } from '../../config/load/validate.ts'
import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { valueAt } from '../../schema/path.ts'
import { fileKeyId } from '../change/file-keys.ts'
import { namedId, readUuid } from '../change/identity.ts'
import { withId } from '../change/key-id.ts'
import { isTree } from '../hybrid/overlay.ts'
import { nameIn } from '../hybrid/record.ts'
import { isKeyPolicy, isSingleton, type Kind, policyFields, singletonName } from '../kinds.ts'

/** A part of the configuration file that a record of a kind can represent. */
export type FilePart = {
  readonly kind: Kind
  /** Undefined for virtual keys, and for items of a list without a name. */
  readonly name: string | undefined
  readonly path: readonly (string | number)[]
  /** The node of the configuration; for settings and catalogs the object that contains the record. */
  readonly node: unknown
}

/** The parts of a configuration file that are records of a kind, in the order of the file. */
export function* fileParts(file: ConfigTree, kind: Kind): Generator<FilePart> {
  const { placement } = kind
  const { path } = placement
  const holder = valueAt(file, path)
  switch (placement.kind) {
    case 'list':
    case 'keys':
      for (const [index, node] of asList(holder).entries()) {
        const name = placement.kind === 'list' && isTree(node) ? nameIn(kind, node) : undefined
        yield { kind, name, path: [...path, index], node }
      }
      return
    case 'map':
    case 'policies': {
      const fields = placement.kind === 'policies' ? new Set(policyFields(kind)) : undefined
      for (const [name, node] of Object.entries(isTree(holder) ? holder : {})) {
        if (node === undefined || fields?.has(name) === false) continue
        yield { kind, name, path: [...path, name], node }
      }
      return
    }
    case 'settings':
      if (isTree(holder) && placement.fields.some((field) => holder[field] !== undefined))
        yield { kind, name: singletonName, path, node: holder }
      return
    case 'catalog': {
      // An inline text has a form of its own, which an edit would lose.
      const index = asList(holder).findLastIndex((item) => isTree(item) && isTree(item['inline']))
      if (index !== -1)
        yield { kind, name: singletonName, path: [...path, index], node: asList(holder)[index] }
    }
  }
}

/** Id of a part: that of its key, or derived from its name, or from its position if it has no name. */
export function idOfPart({ kind, name, path, node }: FilePart): string {
  if (kind.placement.kind !== 'keys') return namedId(kind.name, name ?? `#${path.at(-1)}`)
  if (typeof node !== 'object' || node === null) return ''
  const cached = idsOfKeys.get(node)
  if (cached !== undefined) return cached
  const id = fileKeyId(node) ?? ''
  idsOfKeys.set(node, id)
  return id
}

// Keys without an id in their metadata are hashed once, not for each list. An entry ends with its
// configuration.
const idsOfKeys = new WeakMap<object, string>()

/** The part with a name. Of settings and catalogs there is one, with any name. */
export function findPartByName(file: ConfigTree, kind: Kind, name: string): FilePart | undefined {
  for (const part of fileParts(file, kind)) if (isSingleton(kind) || part.name === name) return part
  return undefined
}

/** The part at an address: an id, or a name. */
export function findPart(file: ConfigTree, kind: Kind, address: string): FilePart | undefined {
  const id = readUuid(address)
  for (const part of fileParts(file, kind)) {
    if (isSingleton(kind) || part.name === address) return part
    if ((id !== undefined || part.name === undefined) && idOfPart(part) === (id ?? address)) return part
  }
  return undefined
}

/** The value of a part as a record. `node` replaces the node of the part, such as one with references. */
export function recordValue(part: FilePart, node: unknown = part.node): JsonValue {
  const { kind, name = '' } = part
  const { placement } = kind
  // The guard: the configuration is parsed from YAML or JSON.
  const value = node as JsonValue
  if (!isTree(node)) return value
  const members = value as JsonObject
  switch (placement.kind) {
    case 'list':
      return value
    case 'keys':
      return withId(idOfPart(part), members)
    case 'map':
      return { name, ...members }
    case 'policies':
      return isKeyPolicy(kind, name) ? without(members, 'keys') : value
    case 'settings':
      return Object.fromEntries(Object.entries(members).filter(([field]) => placement.fields.includes(field)))
    case 'catalog':
      return { custom: members['inline'] ?? {} }
  }
}

function without(members: JsonObject, field: string): JsonObject {
  const { [field]: _, ...rest } = members
  return rest
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
