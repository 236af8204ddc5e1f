import { ApiError, api } from '../api/client.ts'
import { type ConfigRecord, fetchRecord, type RecordPage, recordsPath } from '../api/resources.ts'
import { isObject } from '../schema-form/model/value.ts'
import { editableRecord } from './editable-value.ts'

/** A value to store. Without `record` it is a new one. */
export type Draft = {
  readonly kind: string
  /** The record as loaded, whose revision must still be current. */
  readonly record: ConfigRecord<unknown> | undefined
  readonly value: unknown
  /** Name of a policy, or `default` of a kind with a single record, that does not exist yet. */
  readonly name?: string | undefined
}

/** Stores a draft, or with `dryRun` validates it alone. Returns the record with masked secrets. */
export async function putDraft(
  { kind, record, value, name }: Draft,
  { dryRun }: { dryRun: boolean },
): Promise<ConfigRecord<unknown>> {
  const address = record?.id ?? name
  const isItem = address !== undefined
  const reply = await api<{ resources: readonly ConfigRecord<unknown>[] }>(recordsPath(kind, address), {
    method: 'PUT',
    query: { ...(dryRun && { dryRun }), ...(record && { retain: true }) },
    body: isItem ? { value } : { resources: [{ value }] },
    ...(record?.revision !== undefined && { revision: String(record.revision) }),
  })
  const [stored] = reply.resources
  return stored ?? { kind, id: address ?? '', value }
}

export async function removeRecord(
  { kind, id, revision }: ConfigRecord<unknown>,
  dryRun = false,
): Promise<void> {
  await api(recordsPath(kind, id), {
    method: 'DELETE',
    query: { ...(dryRun && { dryRun }) },
    ...(revision !== undefined && { revision: String(revision) }),
  })
}

/** The record at an address; undefined if there is none. */
export async function findRecord(kind: string, id: string): Promise<ConfigRecord<unknown> | undefined> {
  try {
    return editableRecord(await fetchRecord<unknown>(kind, id))
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}

/** Whether a record with this name exists, in the file or in the database. */
export async function nameExists(kind: string, name: string): Promise<boolean> {
  const query = { name, sort: 'name', limit: 1 }
  const { resources } = await api<RecordPage<unknown>>(recordsPath(kind), { query })
  return resources.length > 0
}

/** Name of a value, by which a kind with names identifies it. */
export function nameOf(kind: string, value: unknown): string | undefined {
  if (kind === 'llm.apiKey' || !isObject(value)) return undefined
  const name = (kind === 'llm.model' ? value['id'] : undefined) ?? value['name']
  return typeof name === 'string' && name !== '' ? name : undefined
}

/** Name of a record on the screen. */
export function titleOf({ id, name, value }: ConfigRecord<unknown>): string {
  if (name !== undefined) return name
  if (!isObject(value)) return id
  const { metadata } = value
  const shown = value['name'] ?? (isObject(metadata) ? metadata['name'] : undefined) ?? value['id']
  return typeof shown === 'string' && shown !== '' ? shown : id
}
