import type { ConfigRecord } from '../../api/resources.ts'
import { hasMask, isObject } from '../../schema-form/model/value.ts'

/** The value for a copy of a record: another name, and no secrets, which only the stored record has. */
export function duplicateOf({ value }: ConfigRecord<unknown>): unknown {
  const own = withoutMasks(value)
  if (!isObject(own)) return own
  const { id: _, name, ...rest } = own
  return typeof name === 'string' ? { name: `${name}-copy`, ...rest } : rest
}

function withoutMasks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMasks)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => !(typeof member === 'string' && hasMask(member)))
      .map(([name, member]) => [name, withoutMasks(member)]),
  )
}
