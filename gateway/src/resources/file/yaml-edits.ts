import type { ConfigTree } from '../../config/load/validate.ts'
import type { YamlEdit } from '../../config/yaml/draft.ts'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import { valueAt } from '../../schema/path.ts'
import type { Draft, Envelope } from '../change/change.ts'
import { withId } from '../change/key-id.ts'
import type { Plan, PlannedPut, PlannedRemove } from '../change/plan.ts'
import type { RotatedFields } from '../change/rotate.ts'
import { isTree } from '../hybrid/overlay.ts'
import { freshSection, isKeyPolicy, type Kind } from '../kinds.ts'
import type { FileRecord } from './plan-state.ts'

/** Edits of the YAML document that apply a plan. */
export function yamlEdits({ changes }: Plan<FileRecord>, file: ConfigTree): YamlEdit[] {
  const created = new Set<string>()
  return changes.flatMap((change) =>
    change.op === 'remove' ? removeEdits(change, file) : putEdits(change, file, created),
  )
}

/**
 * A record as the API returns it. In file mode it has neither revision nor times (specification, "Resource
 * envelope").
 */
export function fileEnvelope({ kind, id, draft: { name, value } }: PlannedPut<FileRecord>): Envelope {
  switch (kind.placement.kind) {
    case 'keys':
      return { kind: kind.name, id, value: isJsonObject(value) ? withId(id, value) : value }
    case 'policies':
      return { kind: kind.name, id, name, value }
    default:
      return { kind: kind.name, id, value }
  }
}

function removeEdits({ kind, existing: { path } }: PlannedRemove<FileRecord>, file: ConfigTree): YamlEdit[] {
  const { placement } = kind
  switch (placement.kind) {
    case 'settings': {
      const own = valueAt(file, placement.path)
      const present = placement.fields.filter((field) => isTree(own) && own[field] !== undefined)
      return present.map((field) => ({ op: 'remove', path: [...placement.path, field] }))
    }
    case 'catalog':
      return [{ op: 'remove', path: catalogToRemove(path, file) }]
    default:
      return [{ op: 'remove', path }]
  }
}

/** The path of the catalog, or of the outermost parent without other members. */
function catalogToRemove(path: FileRecord['path'], file: ConfigTree): FileRecord['path'] {
  const parent = path.slice(0, -1)
  const holder = valueAt(file, parent)
  if (parent.length === 0 || typeof holder !== 'object' || holder === null) return path
  return Object.keys(holder).length === 1 ? catalogToRemove(parent, file) : path
}

/** `created` are the sections that earlier edits create. */
function putEdits(put: PlannedPut<FileRecord>, file: ConfigTree, created: Set<string>): YamlEdit[] {
  const { kind, draft, existing } = put
  const { placement } = kind
  const section = sectionEdits(placement.path[0] ?? '', file, created)
  if (put.rotated !== undefined && existing !== undefined) return rotationEdits(put.rotated, existing, file)
  switch (placement.kind) {
    case 'list':
    case 'keys': {
      const { value } = fileEnvelope(put)
      // An item keeps its position, also under a new name.
      return existing === undefined
        ? [...section, { op: 'append', path: placement.path, value }]
        : [{ op: 'set', path: existing.path, value }]
    }
    case 'map': {
      const isRenamed = existing !== undefined && existing.name !== draft.name
      return [...(isRenamed ? [{ op: 'remove' as const, path: existing.path }] : []), setEntry(kind, draft)]
    }
    case 'policies':
      return [...section, ...policyEdits(kind, draft, file)]
    case 'settings':
      return [...section, ...settingsEdits(placement, draft, file)]
    case 'catalog': {
      const { custom } = isJsonObject(draft.value) ? draft.value : {}
      const value = { inline: custom ?? {} }
      return [
        existing === undefined
          ? { op: 'append', path: placement.path, value }
          : { op: 'set', path: existing.path, value },
      ]
    }
  }
}

/** Replaces the secret only: the other members retain their text. An id that was derived becomes explicit. */
function rotationEdits(
  { keyHash, previousKeys }: RotatedFields,
  { id, path }: FileRecord,
  file: ConfigTree,
): YamlEdit[] {
  const item = valueAt(file, path)
  const edits: YamlEdit[] = [{ op: 'set', path: [...path, 'keyHash'], value: keyHash }]
  if (isTree(item) && item['key'] !== undefined) edits.push({ op: 'remove', path: [...path, 'key'] })
  if (valueAt(item, ['metadata', 'id']) !== id)
    edits.push({ op: 'set', path: [...path, 'metadata', 'id'], value: id })
  if (previousKeys !== undefined)
    edits.push({ op: 'set', path: [...path, 'previousKeys'], value: previousKeys })
  else if (isTree(item) && item['previousKeys'] !== undefined)
    edits.push({ op: 'remove', path: [...path, 'previousKeys'] })
  return edits
}

/** Edits that create a missing section. */
function sectionEdits(name: string, file: ConfigTree, created: Set<string>): YamlEdit[] {
  const fresh = freshSection(name)
  if (fresh === undefined || isTree(file[name]) || created.has(name)) return []
  created.add(name)
  return Object.entries(fresh).map(([field, value]) => ({ op: 'set', path: [name, field], value }))
}

function setEntry({ placement }: Kind, { name, value }: Draft): YamlEdit {
  const { name: _, ...rest } = isJsonObject(value) ? value : {}
  return { op: 'set', path: [...placement.path, name], value: rest }
}

/** The keys of a key policy are separate records, which a change of the policy retains. */
function policyEdits(kind: Kind, { name, value }: Draft, file: ConfigTree): YamlEdit[] {
  const path = [...kind.placement.path, name]
  const before = valueAt(file, path)
  if (!isKeyPolicy(kind, name) || !isJsonObject(value)) return [{ op: 'set', path, value }]
  if (!isTree(before)) return [{ op: 'set', path, value: { ...value, keys: [] } }]
  const removed = Object.keys(before).filter((field) => field !== 'keys' && !Object.hasOwn(value, field))
  return [
    ...removed.map((field): YamlEdit => ({ op: 'remove', path: [...path, field] })),
    ...Object.entries(value).map(
      ([field, member]): YamlEdit => ({ op: 'set', path: [...path, field], value: member }),
    ),
  ]
}

type SettingsPlacement = Extract<Kind['placement'], { kind: 'settings' }>

function settingsEdits({ path, fields }: SettingsPlacement, { value }: Draft, file: ConfigTree): YamlEdit[] {
  const own = valueAt(file, path)
  const sent: JsonObject = isJsonObject(value) ? value : {}
  return fields.flatMap((field): YamlEdit[] => {
    const member = sent[field]
    if (member !== undefined) return [{ op: 'set', path: [...path, field], value: member }]
    return isTree(own) && own[field] !== undefined ? [{ op: 'remove', path: [...path, field] }] : []
  })
}
