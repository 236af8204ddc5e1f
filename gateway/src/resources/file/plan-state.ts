import type { ConfigTree } from '../../config/load/validate.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import { type ApiKeyRecord, allDigests, apiKeyRecordSchema } from '../../policies/api-key/record.ts'
import { check } from '../../schema/check.ts'
import { valueAt } from '../../schema/path.ts'
import { type Draft, notFound, putCreates, type Refusal, refusal } from '../change/change.ts'
import { fileKeyId, fileKeys, findFileKeys } from '../change/file-keys.ts'
import { namedId } from '../change/identity.ts'
import type { ExistingKey, ExistingRecord, KeyDraft, PlanState } from '../change/plan.ts'
import { hasKeyPolicy, isTree } from '../hybrid/overlay.ts'
import { keyIssues, keyItem } from '../hybrid/record.ts'
import { freshSection, isSingleton, type Kind, keysPath } from '../kinds.ts'
import { type FilePart, findPart, findPartByName, idOfPart } from '../records/file-records.ts'

/** A record of the file, with its path in the document. */
export type FileRecord = ExistingRecord & { readonly path: readonly (string | number)[] }

/** Plan state of file mode. `ids` are those of new keys, in order. */
export function createFilePlanState(file: ConfigTree, ids: readonly string[]): PlanState<FileRecord> {
  let usedIds = 0
  let digests: KeyDigests | undefined

  const find = (kind: Kind, address: string): FileRecord | undefined =>
    kind.placement.kind === 'keys' ? findKey(address, file) : recordOf(findPart(file, kind, address))

  return {
    find,
    findByName: (kind, name) => recordOf(findPartByName(file, kind, name)),
    findRemovable: find,
    idFor: (kind, name) => namedId(kind.name, name),
    newKeyId() {
      usedIds += 1
      return ids[usedIds - 1] ?? ''
    },
    creates: (kind, name) => isSingleton(kind) || (putCreates(kind) && name !== undefined),
    refuseMissing: notFound,
    refuseNamed: (kind, draft) => refuseNamed(kind, draft, file),
    refuseKey({ id, value }, existing) {
      digests ??= keyDigests(file)
      return refuseKey({ id, value }, existing, digests)
    },
    readKey: ({ id, path }) => readKey(id, valueAt(file, path), file),
    hasKeyPolicy: () => hasKeyPolicy(file),
    isKeyPolicyRequired: () => fileKeys(file).length > 0,
  }
}

function recordOf(part: FilePart | undefined): FileRecord | undefined {
  return part && { id: idOfPart(part), name: part.name, revision: undefined, path: part.path }
}

/** Keys of the file are identified by `metadata.id`, else by the id derived from the key. */
function findKey(address: string, file: ConfigTree): FileRecord | undefined {
  const [index] = findFileKeys(address, file)
  if (index === undefined) return undefined
  const id = fileKeyId(fileKeys(file)[index]) ?? address
  return { id, name: undefined, revision: undefined, path: [...keysPath, index] }
}

function readKey(id: string, value: unknown, file: ConfigTree): ExistingKey | Refusal {
  if (!isKeyRecord(value)) return refusal(409, 'the key in the file has mistakes; correct them by hand first')
  if (findFileKeys(id, file).length > 1) return refusal(409, 'the file has several keys with this id')
  // The guard: the configuration is parsed from YAML, with references expanded.
  return { kind: 'key', record: value, value: value as unknown as JsonObject }
}

function refuseNamed(kind: Kind, { value }: Draft, file: ConfigTree): Refusal | undefined {
  const { placement } = kind
  const [section = ''] = placement.path
  const isMissing = freshSection(section) === undefined && !isTree(file[section])
  if (placement.kind === 'policies' && isMissing) {
    return refusal(409, `${kind.name} needs ${section} in the configuration file`)
  }
  // The file has other catalogs in place of `base`; the last inline one is `custom`.
  if (placement.kind === 'catalog' && isTree(value) && value['base'] !== undefined) {
    return refusal(
      400,
      'modelCatalog/default: in file mode there is only custom; name other catalogs in the file',
    )
  }
  return undefined
}

/** Digests of keys, with their index in the file. */
type KeyDigests = Map<string, number | 'request'>

/** `digests` are those of the file and of the request so far. */
function refuseKey(
  { id, value }: Omit<KeyDraft, 'kind'>,
  existing: FileRecord | undefined,
  digests: KeyDigests,
): Refusal | undefined {
  const issues = keyIssues(value)
  if (issues.length > 0) return refusal(500, issues.join('\n'))
  const item = keyItem(id, value)
  for (const digest of item === undefined ? [] : allDigests(item)) {
    const owner = digests.get(digest)
    if (owner !== undefined && (owner === 'request' || owner !== existing?.path.at(-1))) {
      return refusal(409, 'the same key exists already')
    }
    digests.set(digest, 'request')
  }
  return undefined
}

function keyDigests(file: ConfigTree): KeyDigests {
  const digests: KeyDigests = new Map()
  for (const [index, key] of fileKeys(file).entries()) {
    if (isKeyRecord(key)) for (const digest of allDigests(key)) digests.set(digest, index)
  }
  return digests
}

function isKeyRecord(value: unknown): value is ApiKeyRecord {
  return check(apiKeyRecordSchema, value).kind === 'valid'
}
