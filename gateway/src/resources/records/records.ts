import type { JsonValue } from '../../lib/json/json.ts'
import type { Envelope } from '../change/change.ts'
import { type Kind, kinds } from '../kinds.ts'
import type { Resources } from '../resources.ts'
import { maskRecord } from '../secrets/secret-paths.ts'
import { lineOf, referencesAt, withReferences } from './file-index.ts'
import { type FilePart, fileParts, findPart, idOfPart, recordValue } from './file-records.ts'
import { type RevisionKey, revisionOf } from './revision.ts'

/** Place of a record: the configuration file, the database, or an object of a cluster. */
export type RecordOrigin =
  | { readonly kind: 'file'; readonly line?: number }
  | { readonly kind: 'database' }
  | { readonly kind: 'object'; readonly object: string }

/** A record of the file or of the database. */
export type ConfigRecord =
  | { readonly source: 'database'; readonly kind: Kind; readonly envelope: Envelope }
  | { readonly source: 'file'; readonly kind: Kind; readonly part: FilePart }

/** A record as lists with origins return it. */
export type RecordView = Omit<Envelope, 'revision'> & {
  readonly revision?: number | string
  readonly origin: RecordOrigin
}

/** Records of one kind or of all: those of the database, then those of the file, created on iteration. */
export function* configRecords(
  resources: Resources,
  stored: Iterable<Envelope>,
  only: Kind | undefined,
): Generator<ConfigRecord> {
  const { file } = resources.effective()
  for (const envelope of stored) {
    const kind = only ?? kinds.find(({ name }) => name === envelope.kind)
    if (kind !== undefined) yield { source: 'database', kind, envelope }
  }
  for (const kind of only === undefined ? kinds : [only])
    for (const part of fileParts(file, kind)) yield { source: 'file', kind, part }
}

/** The record at an address: an id, or a name. */
export function findConfigRecord(
  resources: Resources,
  kind: Kind,
  address: string,
): ConfigRecord | undefined {
  const found = resources.find(kind, address)
  if (found.kind === 'found') return { source: 'database', kind, envelope: found.envelope }
  const part = findPart(resources.effective().file, kind, address)
  return part && { source: 'file', kind, part }
}

export function idOfRecord(record: ConfigRecord): string {
  return record.source === 'database' ? record.envelope.id : idOfPart(record.part)
}

/** Name of a policy; other records have it in their value. */
export function policyName({ kind, ...record }: ConfigRecord): string | undefined {
  if (kind.placement.kind !== 'policies') return undefined
  return record.source === 'database' ? record.envelope.name : record.part.name
}

/** The value as stored. References of the file are expanded. */
export function storedValue(record: ConfigRecord): JsonValue {
  return record.source === 'database' ? record.envelope.value : recordValue(record.part)
}

/** The value as written, with references to the environment. */
export function writtenValue(record: ConfigRecord, resources: Resources): JsonValue {
  if (record.source === 'database') return record.envelope.value
  const { fileIndex } = resources.effective()
  const { part } = record
  const references = referencesAt(fileIndex?.references, part.path)
  return recordValue(part, withReferences(part.node, references))
}

/** The value as returned: with references, and with masks in place of secrets. */
export function shownValue(record: ConfigRecord, resources: Resources): JsonValue {
  return maskRecord(record.kind, policyName(record), writtenValue(record, resources))
}

/** The record as the API returns it. */
export function viewRecord(
  record: ConfigRecord,
  resources: Resources,
  { reveal, revisionKey }: { readonly reveal: boolean; readonly revisionKey: RevisionKey },
): RecordView {
  const value = reveal ? writtenValue(record, resources) : shownValue(record, resources)
  if (record.source === 'database') return { ...record.envelope, value, origin: { kind: 'database' } }
  const name = policyName(record)
  return {
    kind: record.kind.name,
    id: idOfPart(record.part),
    ...(name === undefined ? {} : { name }),
    value,
    revision: revisionOf(writtenValue(record, resources), revisionKey),
    origin: originOf(record.part, resources),
  }
}

function originOf(part: FilePart, resources: Resources): RecordOrigin {
  const { fileIndex, objectOf } = resources.effective()
  const object = objectOf?.(part.path)
  if (object !== undefined) return { kind: 'object', object }
  const line = fileIndex && lineOf(fileIndex, part)
  return line === undefined ? { kind: 'file' } : { kind: 'file', line }
}
