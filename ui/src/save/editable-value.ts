import type { ConfigRecord } from '../api/resources.ts'
import { isObject } from '../schema-form/model/value.ts'

/** The value without the id of a key, which the gateway adds and does not accept back. */
export function editableValue(record: ConfigRecord<unknown> | undefined): unknown {
  if (record?.kind !== 'llm.apiKey' || !isObject(record.value)) return record?.value
  const { metadata, ...rest } = record.value
  if (!isObject(metadata)) return record.value
  const { id: _, ...own } = metadata
  return Object.keys(own).length === 0 ? rest : { ...rest, metadata: own }
}

/** The record with its editable value. */
export function editableRecord(record: ConfigRecord<unknown>): ConfigRecord<unknown> {
  return { ...record, value: editableValue(record) }
}
