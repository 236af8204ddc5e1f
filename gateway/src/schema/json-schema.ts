import { z } from 'zod'
import type { Format, Schema } from './dsl.ts'
import type { ShapeMeta } from './shape.ts'

type JsonSchema = z.core.JSONSchema.BaseSchema

/** What a value that is filled from the environment looks like, in places where plain text is not what belongs there. */
const reference = { type: 'string', pattern: '^\\$' } as const

/** As much of a format as a pattern can say, where no reference to the environment takes part. */
const formatPatterns: Record<Format, string | undefined> = {
  duration: '\\$|^(\\d+(\\.\\d+)?(ms|[smhd]))+$',
  'host:port': '\\$|:\\d+$',
  url: '\\$|^https?://',
  cel: undefined,
  port: undefined,
}

/** Metadata of ours, which the library copies beside the words of JSON Schema. */
const ownKeys: readonly (keyof ShapeMeta | 'exactlyOne')[] = [
  'doc',
  'example',
  'secret',
  'advanced',
  'format',
  'mismatch',
  'roots',
  'min',
  'max',
  'exactlyOne',
]

/**
 * JSON Schema (draft 7, which editors know best) of a configuration as it is written: numbers, booleans and fixed words
 * may be references to the environment. Descriptions, defaults and examples come from the fields' metadata; secrets are
 * `writeOnly`; formats of our own are `x-format`.
 */
export function jsonSchemaOf(schema: Schema, { title }: { title: string }): object {
  const json = z.toJSONSchema(schema, {
    target: 'draft-07',
    io: 'input',
    reused: 'inline',
    override: ({ jsonSchema }) => dress(jsonSchema),
  })
  return { ...json, title }
}

/** Turns the metadata that the library copied as it is into words of JSON Schema. In place, as the library wants it. */
function dress(json: JsonSchema): void {
  const { doc, example, secret, advanced, format, roots, min, max, exactlyOne } = json
  for (const key of ownKeys) delete json[key]
  if (typeof doc === 'string' && doc !== '') json.description = doc
  if (example !== undefined) json.examples = [example]
  if (secret === true) json.writeOnly = true
  if (advanced === true) json['x-advanced'] = true
  if (isFormat(format)) {
    json['x-format'] = format
    if (formatPatterns[format] !== undefined) json.pattern = formatPatterns[format]
  }
  if (isProse(json.default, json.type)) delete json.default
  if (Array.isArray(roots)) json['x-roots'] = roots
  if (Array.isArray(exactlyOne)) json.oneOf = exactlyOne.map((key) => ({ required: [String(key)] }))
  bound(json, min, max)
  allowReference(json)
}

/** Some defaults are described in words, which an editor would fill in. */
function isProse(value: unknown, type: unknown): boolean {
  return typeof value === 'string' && (value.includes(' ') || type !== 'string')
}

function isFormat(format: unknown): format is Format {
  return typeof format === 'string' && Object.hasOwn(formatPatterns, format)
}

/** The library writes its own bounds of safe integers and finite numbers, which say nothing to a person. */
function bound(json: JsonSchema, min: unknown, max: unknown): void {
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
