import { type Definitions, type JsonSchema, resolveSchema } from './schema.ts'

/** Descriptive part of every node. */
export type NodeFacts = {
  readonly description: string | undefined
  readonly example: unknown
  readonly placeholder: string | undefined
  readonly defaultValue: unknown
  readonly secret: boolean
  readonly advanced: boolean
  /** Whether the value may be a reference to the environment such as `$PORT`. */
  readonly acceptsReference: boolean
}

export type TextFormat = 'duration' | 'host:port' | 'service address' | 'url' | 'cel' | 'port' | 'file'

export type ObjectField = {
  readonly name: string
  readonly schema: JsonSchema
  readonly required: boolean
  readonly advanced: boolean
}

/** Input that a schema needs: the form renders one component for each kind. */
export type FormNode = NodeFacts &
  (
    | {
        readonly kind: 'text'
        readonly format: TextFormat | undefined
        readonly pattern: string | undefined
        readonly minLength: number
        readonly maxLength: number
        readonly roots: readonly string[] | undefined
      }
    | {
        readonly kind: 'number'
        readonly integer: boolean
        readonly minimum: number | undefined
        readonly maximum: number | undefined
        /** Whether the number may be written as a text: an exact decimal. */
        readonly acceptsText: boolean
      }
    | { readonly kind: 'boolean' }
    | {
        readonly kind: 'choice'
        readonly values: readonly unknown[]
        readonly number: NumberBounds | undefined
      }
    | {
        readonly kind: 'object'
        readonly fields: readonly ObjectField[]
        /** Fields of which exactly one is present. */
        readonly oneOf: readonly string[]
      }
    | {
        readonly kind: 'list'
        readonly item: JsonSchema
        readonly minItems: number
        readonly maxItems: number
      }
    | { readonly kind: 'map'; readonly value: JsonSchema }
    | { readonly kind: 'alternatives'; readonly options: readonly JsonSchema[] }
    | { readonly kind: 'json' }
  )

type NumberBounds = { readonly minimum: number | undefined; readonly maximum: number | undefined }
export type NodeOf<Kind extends FormNode['kind']> = Extract<FormNode, { kind: Kind }>

const formats: ReadonlySet<string> = new Set([
  ...['duration', 'host:port', 'service address', 'url', 'cel', 'port', 'file'],
])

/** Reads one level of a schema. Fields, items and options are read when they are rendered. */
export function readNode(schema: JsonSchema, definitions: Definitions): FormNode {
  const resolved = resolveSchema(schema, definitions)
  const options = optionsOf(resolved, definitions)
  const shapes = options.filter((option) => !isReference(option))
  const facts = { ...factsOf(resolved), acceptsReference: shapes.length < options.length }
  const [first] = shapes
  if (shapes.length > 1 || first === undefined) return unionNode(shapes, facts)
  return { ...facts, ...plainNode({ ...first, ...formatOf(resolved) }) } as FormNode
}

/** Members of `anyOf`, nested ones included; the schema itself without. */
function optionsOf(schema: JsonSchema, definitions: Definitions): readonly JsonSchema[] {
  if (schema.anyOf === undefined) return [schema]
  return schema.anyOf.flatMap((option) => optionsOf(resolveSchema(option, definitions), definitions))
}

/** Whether an alternative is a reference to the environment: `$NAME`. */
function isReference(schema: JsonSchema): boolean {
  return schema.type === 'string' && schema.pattern === '^\\$'
}

function unionNode(shapes: readonly JsonSchema[], facts: NodeFacts): FormNode {
  const numeric = shapes.find(isNumeric)
  const choice = shapes.find((shape) => shape.enum !== undefined)
  if (shapes.length === 2 && numeric && choice)
    return { ...facts, kind: 'choice', values: choice.enum ?? [], number: boundsOf(numeric) }
  if (shapes.length === 2 && numeric && shapes.some((shape) => shape.type === 'string')) {
    const integer = numeric.type === 'integer'
    return { ...facts, kind: 'number', integer, ...boundsOf(numeric), acceptsText: true }
  }
  return shapes.length === 0
    ? { ...facts, kind: 'json' }
    : { ...facts, kind: 'alternatives', options: shapes }
}

function plainNode(schema: JsonSchema): object {
  if (schema.enum !== undefined) return { kind: 'choice', values: schema.enum, number: undefined }
  switch (schema.type) {
    case 'string':
      return {
        kind: 'text',
        format: schema['x-format'],
        pattern: schema.pattern,
        minLength: schema.minLength ?? 0,
        maxLength: schema.maxLength ?? Number.POSITIVE_INFINITY,
        roots: schema['x-roots'],
      }
    case 'integer':
    case 'number':
      return { kind: 'number', integer: schema.type === 'integer', ...boundsOf(schema), acceptsText: false }
    case 'boolean':
      return { kind: 'boolean' }
    case 'array':
      return {
        kind: 'list',
        item: schema.items ?? {},
        minItems: schema.minItems ?? 0,
        maxItems: schema.maxItems ?? Number.POSITIVE_INFINITY,
      }
    case 'object':
      return objectNode(schema)
    default:
      return { kind: 'json' }
  }
}

function objectNode(schema: JsonSchema): object {
  const { properties, additionalProperties: rest, required = [] } = schema
  if (properties === undefined && typeof rest === 'object')
    return isAnything(rest) ? { kind: 'json' } : { kind: 'map', value: rest }
  if (properties === undefined && rest !== false) return { kind: 'json' }
  const fields = Object.entries(properties ?? {}).map(([name, field]) => ({
    name,
    schema: field,
    required: required.includes(name),
    advanced: field['x-advanced'] === true,
  }))
  return { kind: 'object', fields, oneOf: (schema.oneOf ?? []).flatMap((option) => option.required) }
}

function isAnything(schema: JsonSchema): boolean {
  return schema.type === undefined && schema.anyOf === undefined && schema.$ref === undefined && !schema.enum
}

function isNumeric({ type }: JsonSchema): boolean {
  return type === 'integer' || type === 'number'
}

function boundsOf({ minimum, maximum }: JsonSchema): NumberBounds {
  return { minimum, maximum }
}

function formatOf(schema: JsonSchema): JsonSchema {
  const format = schema['x-format']
  return format !== undefined && formats.has(format) ? { 'x-format': format } : {}
}

function factsOf(schema: JsonSchema): NodeFacts {
  const example = schema.examples?.[0]
  const shown = schema.default ?? example
  return {
    description: schema.description,
    example,
    defaultValue: schema.default,
    placeholder: shown === undefined || typeof shown === 'object' ? undefined : String(shown),
    secret: schema.writeOnly === true,
    advanced: schema['x-advanced'] === true,
    acceptsReference: false,
  }
}
