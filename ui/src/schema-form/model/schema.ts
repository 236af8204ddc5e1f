/** JSON Schema (draft 7) as the gateway writes it, with its own keywords. */
export type JsonSchema = {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly type?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly propertyNames?: JsonSchema
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  /** Exactly one of these keys. */
  readonly oneOf?: readonly { readonly required: readonly string[] }[]
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  /** A secret: replies mask it. */
  readonly writeOnly?: boolean
  readonly 'x-format'?: string
  readonly 'x-advanced'?: boolean
  /** Variables that a CEL expression may use. */
  readonly 'x-roots'?: readonly string[]
  readonly definitions?: Readonly<Record<string, JsonSchema>>
}

export type Definitions = Readonly<Record<string, JsonSchema>>

/** The target of a reference, with description and flags of the reference itself in front. */
export function resolveSchema(schema: JsonSchema, definitions: Definitions): JsonSchema {
  if (schema.$ref === undefined) return schema
  const { $ref, ...own } = schema
  const target = definitions[$ref.replace('#/definitions/', '')]
  return target === undefined ? own : { ...resolveSchema(target, definitions), ...own }
}
