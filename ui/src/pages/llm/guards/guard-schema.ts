import { readNode } from '../../../schema-form/model/node.ts'
import type { JsonSchema } from '../../../schema-form/model/schema.ts'
import type { Direction } from './guard-value.ts'

/** A kind of guard, with its documentation and schema. */
export type GuardKind = {
  readonly name: string
  readonly about: string | undefined
  readonly schema: JsonSchema
}

/** Schema of one guard of a direction, with the definitions that it refers to. */
export function guardSchemaOf(policy: JsonSchema, direction: Direction): JsonSchema {
  const definitions = policy.definitions ?? {}
  const list = policy.properties?.[direction]
  return { ...list?.items, definitions }
}

/** Kinds of guards of a schema, in its order. */
export function guardKindsOf(schema: JsonSchema): readonly GuardKind[] {
  const definitions = schema.definitions ?? {}
  const node = readNode(schema, definitions)
  if (node.kind !== 'object') return []
  return node.fields
    .filter(({ name }) => node.oneOf.includes(name))
    .map(({ name, schema: field }) => ({
      name,
      about: readNode(field, definitions).description,
      schema: field,
    }))
}
