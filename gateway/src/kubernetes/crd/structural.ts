import type { Format } from '../../schema/dsl.ts'
import { alternativesOf, type Shape } from '../../schema/shape.ts'

/** A structural schema of a CustomResourceDefinition: a subset of OpenAPI 3.0. */
export type StructuralSchema = { readonly [keyword: string]: unknown }

export type Validation = { readonly rule: string; readonly message: string }

// Bounds of values without bounds of their own. The API server estimates the cost of rules from bounds.
const maxStringLength = 16_384
const maxItems = 64

/** Exact where an expression can be: the controller validates every object again. */
const formats: Record<Format, { maxLength: number; pattern?: string; expected: string }> = {
  duration: {
    maxLength: 64,
    pattern: '^([0-9.]+d)?([0-9.]+h)?([0-9.]+m)?([0-9.]+s)?([0-9.]+ms)?$',
    expected: 'a duration such as 500ms, 10s or 1h30m',
  },
  'host:port': { maxLength: 300, pattern: '^.+:[0-9]{1,5}$', expected: 'host:port' },
  // Objects of a cluster must not name sockets.
  'service address': { maxLength: 300, pattern: '^.+:[0-9]{1,5}$', expected: 'host:port' },
  url: {
    maxLength: 2_048,
    pattern: '^https?://[^/]',
    expected: 'a URL that starts with http:// or https://',
  },
  file: { maxLength: 4_096, expected: 'the path of a file' },
  cel: { maxLength: maxStringLength, expected: 'a CEL expression' },
  port: { maxLength: 5, expected: 'a port number' },
}

/**
 * Cost of a rule over all values of one object, by the API server's estimate, which refuses rules above
 * 10,000,000 and definitions above 100,000,000.
 */
const maxRuleCost = 1_000_000

/**
 * Converts a shape to a structural schema: every string, list and map is bounded, choices and formats are
 * rules, unknown keys are left to the API server, which refuses or removes them. A union that a structural
 * schema cannot express accepts any JSON; the controller validates it. `count` is the maximal number of these
 * values in an object: keywords with poorer messages replace rules that would cost too much.
 */
export function structuralSchema(shape: Shape, count = 1): StructuralSchema {
  const description = descriptionOf(shape)
  return { ...(description === '' ? {} : { description }), ...valueSchema(shape, count) }
}

/** The documentation of a field. Defaults are never inserted by the API server. */
function descriptionOf({ meta }: Shape): string {
  if (meta.default === undefined) return meta.doc
  const value = typeof meta.default === 'string' ? meta.default : JSON.stringify(meta.default)
  return `${meta.doc} Default: ${value}.`.trim()
}

function valueSchema(shape: Shape, count: number): StructuralSchema {
  const max = shape.meta.max ?? maxItems
  switch (shape.kind) {
    case 'string':
      return stringSchema(shape, count)
    case 'number':
      return { type: shape.integer ? 'integer' : 'number', ...range(shape.meta) }
    case 'boolean':
      return { type: 'boolean' }
    case 'enumeration':
      return { type: 'string', enum: [...shape.values] }
    case 'list':
      return {
        type: 'array',
        'x-kubernetes-list-type': 'atomic',
        ...(shape.meta.min === undefined ? {} : { minItems: shape.meta.min }),
        maxItems: max,
        items: structuralSchema(shape.item, count * max),
      }
    case 'map':
      return shape.value.kind === 'any'
        ? { type: 'object', ...anyJson }
        : {
            type: 'object',
            maxProperties: max,
            additionalProperties: structuralSchema(shape.value, count * max),
          }
    case 'object':
      return objectSchema(shape, count)
    case 'choice':
      return unionSchema(shape, count)
    case 'any':
      return anyJson
  }
}

const anyJson = { 'x-kubernetes-preserve-unknown-fields': true } as const

function range({ min, max }: { min?: number; max?: number }): StructuralSchema {
  return { ...(min === undefined ? {} : { minimum: min }), ...(max === undefined ? {} : { maximum: max }) }
}

function stringSchema({ meta }: Shape & { kind: 'string' }, count: number): StructuralSchema {
  const { format, min, max } = meta
  const maxLength = max ?? (format === undefined ? maxStringLength : formats[format].maxLength)
  const bounded = { type: 'string', ...(min === undefined ? {} : { minLength: min }), maxLength }
  if (format === undefined || formats[format].pattern === undefined) return bounded
  const { pattern, expected } = formats[format]
  // The length in bytes and that of the pattern, with the factors of the estimate.
  const cost = 4 * maxLength * 0.1 * pattern.length * 0.25 + 20
  if (cost * count > maxRuleCost) return { ...bounded, minLength: 1, pattern }
  const rule = `self != '' && self.matches('${pattern}')`
  return { ...bounded, ...withRules([{ rule, message: `must be ${expected}` }]) }
}

function objectSchema({ fields, exactlyOne }: Shape & { kind: 'object' }, count: number): StructuralSchema {
  const required = [...fields].flatMap(([key, field]) => (field.required ? [key] : []))
  const properties = Object.fromEntries(
    [...fields].map(([key, { shape }]) => [key, structuralSchema(shape, count)]),
  )
  return {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    ...(fields.size === 0 ? {} : { properties }),
    ...oneOf(exactlyOne, properties, count),
  }
}

/** Rules do not see fields without a type. */
function oneOf(
  keys: readonly string[],
  properties: Readonly<Record<string, StructuralSchema>>,
  count: number,
): StructuralSchema {
  if (keys.length === 0) return {}
  const isTyped = keys.every((key) => {
    const { type, 'x-kubernetes-int-or-string': isEither } = properties[key] ?? {}
    return type !== undefined || isEither === true
  })
  const cost = 30 * keys.length + 10
  if (!isTyped || cost * count > maxRuleCost) return { oneOf: keys.map((key) => ({ required: [key] })) }
  const present = keys.map((key) => `has(self.${celName(key)})`)
  const rule = `[${present.join(', ')}].filter(x, x).size() == 1`
  return withRules([{ rule, message: `exactly one of ${keys.join(', ')} is required` }])
}

export function withRules(rules: readonly Validation[]): StructuralSchema {
  return { 'x-kubernetes-validations': rules.map(({ rule, message }) => ({ message, rule })) }
}

/** Words of CEL that are no names there; see "Validation rules" of the CustomResourceDefinition reference. */
const reserved = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

function celName(key: string): string {
  if (reserved.has(key)) return `__${key}__`
  return key
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__')
}

function unionSchema(shape: Shape & { kind: 'choice' }, count: number): StructuralSchema {
  const options = alternativesOf(shape)
  const enumerations = options.filter((option) => option.kind === 'enumeration')
  if (enumerations.length === options.length) {
    return { type: 'string', enum: [...new Set(enumerations.flatMap(({ values }) => values))] }
  }
  const kinds = new Set(options.map(({ kind }) => (kind === 'enumeration' ? 'string' : kind)))
  const [only] = kinds
  if (kinds.size === 1 && only === 'string') return { type: 'string', maxLength: longest(options) }
  if (kinds.size === 1 && only === 'object') {
    return mergedObject(
      options.filter((option) => option.kind === 'object'),
      count,
    )
  }
  const isIntegerOrString =
    kinds.size === 2 &&
    kinds.has('string') &&
    options.some((option) => option.kind === 'number' && option.integer)
  return isIntegerOrString ? { 'x-kubernetes-int-or-string': true } : anyJson
}

function longest(options: readonly Shape[]): number {
  return Math.max(...options.map((option) => Number(valueSchema(option, 1)['maxLength'] ?? maxStringLength)))
}

/** The fields of several objects; only those that all require are required. */
function mergedObject(options: readonly (Shape & { kind: 'object' })[], count: number): StructuralSchema {
  const names = [...new Set(options.flatMap(({ fields }) => [...fields.keys()]))]
  const properties = names.map((name) => {
    const shapes = options.flatMap(({ fields }) => fields.get(name)?.shape ?? [])
    const [first] = shapes
    const forms = new Set(shapes.map((shape) => JSON.stringify(valueSchema(shape, count))))
    const isSame = forms.size === 1 && first !== undefined
    const shape: Shape = isSame ? first : { kind: 'choice', shapes, meta: first?.meta ?? noMeta }
    return [name, structuralSchema(shape, count)]
  })
  const required = names.filter((name) => options.every(({ fields }) => fields.get(name)?.required === true))
  return {
    type: 'object',
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(properties),
  }
}

const noMeta = { doc: '' }
