import type * as z from 'zod'
import type { FieldMeta, Schema } from './dsl.ts'

/** Schema as plain data, independent of the schema library, for documentation, forms and messages. */
export type Shape =
  | { kind: 'string'; meta: ShapeMeta }
  | { kind: 'number'; integer: boolean; meta: ShapeMeta }
  | { kind: 'boolean'; meta: ShapeMeta }
  | { kind: 'enumeration'; values: readonly string[]; meta: ShapeMeta }
  | { kind: 'list'; item: Shape; meta: ShapeMeta }
  | { kind: 'map'; value: Shape; meta: ShapeMeta }
  | { kind: 'object'; fields: ReadonlyMap<string, Field>; exactlyOne: readonly string[]; meta: ShapeMeta }
  | { kind: 'choice'; shapes: readonly Shape[]; meta: ShapeMeta }
  | { kind: 'any'; meta: ShapeMeta }

export type Field = { shape: Shape; required: boolean }

/**
 * `min` and `max` bound a number's value or the length of a list or string; `roots` are the variables of a
 * CEL expression.
 */
export type ShapeMeta = FieldMeta & { min?: number; max?: number; roots?: readonly string[] }

const described = new WeakMap<Schema, Shape>()

/** Returns the shape of a schema; the same object for the same schema. */
export function shapeOf(schema: Schema): Shape {
  const known = described.get(schema)
  if (known !== undefined) return known
  const shape = deriveShape(schema)
  described.set(schema, shape)
  return shape
}

/** Shapes of a child value, with choices expanded. Empty if no child is allowed. */
export function childShapes(shapes: readonly Shape[], step: string | number): Shape[] {
  return shapes.flatMap((shape) => alternativesOf(childShape(shape, step)))
}

/** Expands a choice, and nested choices, to its alternatives. */
export function alternativesOf(shape: Shape | undefined): Shape[] {
  if (shape === undefined) return []
  if (shape.kind !== 'choice') return [shape]
  const secret = shape.meta.secret === true
  return shape.shapes.flatMap(alternativesOf).map((option) => (secret ? asSecret(option) : option))
}

function childShape(shape: Shape, step: string | number): Shape | undefined {
  switch (shape.kind) {
    case 'object':
      return shape.fields.get(String(step))?.shape
    case 'map':
      return shape.value
    case 'list':
      return shape.item
    case 'any':
      return shape
    default:
      return undefined
  }
}

function asSecret(shape: Shape): Shape {
  return { ...shape, meta: { ...shape.meta, secret: true } }
}

function deriveShape(schema: Schema): Shape {
  const meta = metaOf(schema)
  const def = definitionOf(schema)
  switch (def.type) {
    case 'string':
      return { kind: 'string', meta }
    case 'number':
      return { kind: 'number', integer: 'format' in def && def.format === 'safeint', meta }
    case 'boolean':
      return { kind: 'boolean', meta }
    case 'enum':
      return { kind: 'enumeration', values: Object.values(def.entries).map(String), meta }
    case 'array':
      return { kind: 'list', item: shapeOf(asSchema(def.element)), meta }
    case 'record':
      return { kind: 'map', value: shapeOf(asSchema(def.valueType)), meta }
    case 'union':
      return { kind: 'choice', shapes: def.options.map((option) => shapeOf(asSchema(option))), meta }
    case 'object':
      return { kind: 'object', fields: fieldsOf(def.shape), exactlyOne: meta.exactlyOne ?? [], meta }
    case 'optional':
      return shapeOf(asSchema(def.innerType))
    default:
      return { kind: 'any', meta }
  }
}

function fieldsOf(shape: Readonly<Record<string, z.core.$ZodType>>): Map<string, Field> {
  return new Map(
    Object.entries(shape).map(([key, schema]) => [
      key,
      { shape: shapeOf(asSchema(schema)), required: definitionOf(asSchema(schema)).type !== 'optional' },
    ]),
  )
}

// Type guards: the library's types of inner schemas and metadata are wider than the schemas that `dsl.ts`
// creates.
function asSchema(schema: z.core.$ZodType): Schema {
  return schema as Schema
}

function definitionOf(schema: Schema): z.core.$ZodTypes['_zod']['def'] {
  return schema._zod.def as z.core.$ZodTypes['_zod']['def']
}

function metaOf(schema: Schema): ShapeMeta & { exactlyOne?: readonly string[] } {
  return (schema.meta() ?? { doc: '' }) as ShapeMeta & { exactlyOne?: readonly string[] }
}
