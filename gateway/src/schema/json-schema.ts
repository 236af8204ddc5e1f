import * as z from 'zod'
import type { Format, Schema } from './dsl.ts'
import type { ShapeMeta } from './shape.ts'

type JsonSchema = z.core.JSONSchema.BaseSchema

/** Environment reference in a field that is not free text. */
const reference = { type: 'string', pattern: '^\\$' } as const

/** Patterns that approximate the formats. Values with an environment reference always match. */
const formatPatterns: Record<Format, string | undefined> = {
  duration: '\\$|^(\\d+(\\.\\d+)?(ms|[smhd]))+$',
  'host:port': '\\$|:\\d+$',
  'service address': '\\$|:\\d+$|^unix:/.',
  url: '\\$|^https?://',
  cel: undefined,
  port: undefined,
  file: '\\$|^[^\\n]+$',
}

/** Own metadata, which the library copies into the JSON Schema. */
const ownKeys: readonly (keyof ShapeMeta | 'exactlyOne')[] = [
  'doc',
  'example',
  'suggestions',
  'secret',
  'advanced',
  'format',
  'holds',
  'reveals',
  'mismatch',
  'roots',
  'min',
  'max',
  'exactlyOne',
]

/**
 * Converts a schema to JSON Schema (draft 7, best supported by editors) of configuration files: numbers,
 * booleans and enumerations may be environment references. Descriptions, defaults and examples are the
 * fields' metadata; secrets are `writeOnly`; custom formats are `x-format`.
 */
export function jsonSchemaOf(schema: Schema, { title }: { title: string }): object {
  const json = z.toJSONSchema(schema, {
    target: 'draft-07',
    io: 'input',
    reused: 'ref',
    override: ({ jsonSchema }) => toStandardKeywords(jsonSchema),
  })
  return { ...withNamedDefinitions(json), title }
}

type Json = { [key: string]: unknown }

/**
 * Inlines and names definitions. The library creates numbered definitions of nearly everything; only objects
 * with several uses remain definitions, named after the field of their first use.
 */
function withNamedDefinitions(json: Json): Json {
  const { definitions = {}, ...root } = json
  const known = definitions as Record<string, Json>
  const uses = usesOf(json)
  const names = new Map<string, string>()
  const named: Record<string, unknown> = {}

  function resolve(value: unknown, field: string): unknown {
    if (Array.isArray(value)) return value.map((item) => resolve(item, field))
    if (typeof value !== 'object' || value === null) return value
    const { $ref: reference, allOf, ...rest } = value as Json
    if (Array.isArray(allOf) && allOf.length === 1 && Object.keys(rest).length === 0)
      return resolve(allOf[0], field)
    if (typeof reference === 'string') return resolveReference(idOf(reference), field)
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, resolve(inner, keyword.has(key) ? field : key)]),
    )
  }

  function resolveReference(id: string, field: string): unknown {
    const target = known[id] ?? {}
    if (target['properties'] === undefined || uses.get(id) === 1) return resolve(target, field)
    const name = names.get(id) ?? nameFor(id, field)
    return { $ref: `#/definitions/${name}` }
  }

  function nameFor(id: string, field: string): string {
    const taken = new Set(names.values())
    let name = field
    for (let number = 2; taken.has(name); number++) name = `${field}-${number}`
    names.set(id, name)
    named[name] = resolve(known[id], field)
    return name
  }

  const resolved = resolve(root, 'configuration') as Json
  return Object.keys(named).length === 0 ? resolved : { ...resolved, definitions: named }
}

/** Counts the references to each definition. */
function usesOf(json: Json): Map<string, number> {
  const uses = new Map<string, number>()
  const visit = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, inner] of Object.entries(value)) {
      if (key !== '$ref' || typeof inner !== 'string') visit(inner)
      else {
        const id = idOf(inner)
        uses.set(id, (uses.get(id) ?? 0) + 1)
      }
    }
  }
  visit(json)
  return uses
}

function idOf(reference: string): string {
  return reference.replace('#/definitions/', '')
}

/** Keywords of JSON Schema, as opposed to field names. */
const keyword = new Set([
  'properties',
  'items',
  'anyOf',
  'oneOf',
  'allOf',
  'additionalProperties',
  'propertyNames',
])

/** Replaces own metadata by keywords of JSON Schema, in place, as the library requires. */
function toStandardKeywords(json: JsonSchema): void {
  const { doc, example, suggestions, secret, advanced, format, roots, min, max, exactlyOne } = json
  for (const key of ownKeys) delete json[key]
  if (typeof doc === 'string' && doc !== '') json.description = doc
  const further = Array.isArray(suggestions) ? suggestions.filter((one) => one !== example) : []
  if (example !== undefined) json.examples = [example, ...further]
  if (secret === true) json.writeOnly = true
  if (advanced === true) json['x-advanced'] = true
  if (isFormat(format)) {
    json['x-format'] = format
    if (formatPatterns[format] !== undefined) json.pattern = formatPatterns[format]
  }
  if (isProse(json.default, json.type)) delete json.default
  if (Array.isArray(roots)) json['x-roots'] = roots
  if (Array.isArray(exactlyOne)) json.oneOf = exactlyOne.map((key) => ({ required: [String(key)] }))
  setBounds(json, min, max)
  allowReference(json)
}

/** Whether a default is a description, which an editor must not insert. */
function isProse(value: unknown, type: unknown): boolean {
  return typeof value === 'string' && (value.includes(' ') || type !== 'string')
}

function isFormat(format: unknown): format is Format {
  return typeof format === 'string' && Object.hasOwn(formatPatterns, format)
}

/** Sets the configured bounds, in place of the library's bounds of safe integers and finite numbers. */
function setBounds(json: JsonSchema, min: unknown, max: unknown): void {
  if (json.type !== 'number' && json.type !== 'integer') return
  delete json.minimum
  delete json.maximum
  if (typeof min === 'number') json.minimum = min
  if (typeof max === 'number') json.maximum = max
}

function allowReference(json: JsonSchema): void {
  if (json.type === 'number' || json.type === 'integer' || json.type === 'boolean') {
    const { type, minimum, maximum } = json
    delete json.type
    delete json.minimum
    delete json.maximum
    json.anyOf = [
      { type, ...(minimum === undefined ? {} : { minimum }), ...(maximum === undefined ? {} : { maximum }) },
      reference,
    ]
  } else if (json.enum !== undefined) {
    const values = json.enum
    delete json.type
    delete json.enum
    json.anyOf = [{ enum: values }, reference]
  }
}
