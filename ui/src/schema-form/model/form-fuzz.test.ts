import { globSync, readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { configSchema } from '../../../../gateway/src/config/schema.ts'
import { kindSchema } from '../../../../gateway/src/resources/api/kind-schema.ts'
import { type Kind, kinds, policyFields } from '../../../../gateway/src/resources/kinds.ts'
import { check } from '../../../../gateway/src/schema/check.ts'
import { jsonSchemaOf } from '../../../../gateway/src/schema/json-schema.ts'
import { blankValue } from './blank.ts'
import { checkValue } from './check.ts'
import { type FormNode, type NodeOf, readNode } from './node.ts'
import type { Definitions, JsonSchema } from './schema.ts'
import { memberOf, withMember } from './value.ts'

const whole = jsonSchemaOf(configSchema, { title: 'Configuration' })

type Case = { readonly kind: Kind; readonly name: string | undefined; readonly schema: JsonSchema }

/** The schemas of all records, each policy on its own. */
const cases: readonly Case[] = kinds.flatMap((kind) => {
  const names = kind.placement.kind === 'policies' ? policyFields(kind) : [undefined]
  return names.map((name) => ({ kind, name, schema: kindSchema(kind, whole, name) as JsonSchema }))
})

const formatTexts: Readonly<Record<string, readonly string[]>> = {
  duration: ['10s', '500ms', '1h30m'],
  'service address': ['127.0.0.1:8080', '[::1]:80'],
  'host:port': ['127.0.0.1:8080', 'example.com:443', '[::1]:80'],
  url: ['https://example.com', 'http://127.0.0.1:8080/v1'],
  cel: ['true', 'request.method == "GET"', '1 + 1 == 2'],
  port: ['8080'],
  file: ['/etc/tollgate/cert.pem', 'file.json'],
}

/** Values that a user can enter into the inputs of a schema. */
function entered(schema: JsonSchema, definitions: Definitions, depth: number): fc.Arbitrary<unknown> {
  return enteredIn(readNode(schema, definitions), definitions, depth)
}

function enteredIn(node: FormNode, definitions: Definitions, depth: number): fc.Arbitrary<unknown> {
  switch (node.kind) {
    case 'text':
      return enteredText(node)
    case 'number':
      return enteredNumber(node)
    case 'boolean':
      return fc.boolean()
    case 'choice':
      return fc.constantFrom(...node.values)
    case 'json':
      return fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.oneof(fc.integer(), fc.boolean()), {
        maxKeys: 2,
      })
    case 'alternatives':
      return fc.oneof(...node.options.map((option) => entered(option, definitions, depth)))
    case 'map': {
      const maxKeys = depth > 0 ? 2 : 0
      return fc.dictionary(
        fc.stringMatching(/^[a-z][a-z0-9]{0,6}$/),
        entered(node.value, definitions, depth - 1),
        { maxKeys },
      )
    }
    case 'list': {
      const maxLength = Math.min(node.maxItems, Math.max(node.minItems, depth > 0 ? 2 : 0))
      return fc.array(entered(node.item, definitions, depth - 1), { minLength: node.minItems, maxLength })
    }
    case 'object':
      return enteredObject(node, definitions, depth)
  }
}

function enteredText({ format, example, minLength, maxLength }: NodeOf<'text'>): fc.Arbitrary<string> {
  const known = format === undefined ? undefined : formatTexts[format]
  if (known) return fc.constantFrom(...known)
  const longest = Math.min(maxLength, 8)
  const text = fc.stringMatching(new RegExp(`^[a-z]{${Math.max(1, minLength)},${Math.max(1, longest)}}$`))
  return typeof example === 'string' ? fc.oneof(fc.constant(example), text) : text
}

function enteredNumber({ integer, minimum, maximum }: NodeOf<'number'>): fc.Arbitrary<number> {
  const min = minimum ?? 0
  const max = Math.min(maximum ?? min + 1_000, min + 1_000)
  return integer
    ? fc.integer({ min: Math.ceil(min), max: Math.floor(max) })
    : fc.integer({ min: Math.ceil(min * 8), max: Math.floor(max * 8) }).map((eighths) => eighths / 8)
}

/** An object as its inputs create it: from the blank value, field by field. */
function enteredObject(
  node: NodeOf<'object'>,
  definitions: Definitions,
  depth: number,
): fc.Arbitrary<unknown> {
  const variants = node.fields.filter(({ name }) => node.oneOf.includes(name))
  const fields = node.fields.filter(({ name }) => !node.oneOf.includes(name))
  const optional = (depth > 0 ? fields : fields.filter(({ required }) => required)).map(
    ({ name, schema, required }) => {
      const value = entered(schema, definitions, depth - 1).map((member) => ({ name, member }))
      return required ? value : fc.option(value, { nil: undefined, freq: 1 })
    },
  )
  const chosen = variants.map(({ name, schema }) =>
    entered(schema, definitions, depth - 1).map((member) => ({ name, member })),
  )
  const members = fc.tuple(...optional, ...(chosen.length === 0 ? [] : [fc.oneof(...chosen)]))
  return members.map((entries) =>
    entries.reduce<unknown>(
      (object, entry) => (entry ? withMember(object, entry.name, entry.member) : object),
      {},
    ),
  )
}

/** A configuration with one record at its place. */
function configWith({ kind: { placement }, name }: Case, value: unknown): unknown {
  switch (placement.kind) {
    case 'list':
    case 'keys':
      return rooted(placement.path, [value])
    case 'map': {
      const entry = String(memberOf(value, 'name') ?? 'one')
      return rooted(placement.path, { [entry]: withMember(value, 'name', undefined) })
    }
    case 'policies': {
      const policy = name === 'apiKey' && placement.path[0] === 'llm' ? withMember(value, 'keys', []) : value
      return rooted([...placement.path, String(name)], policy)
    }
    case 'settings':
      return { mcp: { ...(value as object), targets: [] } }
    case 'catalog':
      return rooted(
        placement.path,
        Object.values(value as object).map((inline) => ({ inline })),
      )
  }
}

function rooted(path: readonly string[], value: unknown): unknown {
  const tree = path.reduceRight<unknown>((inner, step) => ({ [step]: inner }), value) as Record<
    string,
    object
  >
  const sections: Readonly<Record<string, object>> = { llm: { models: [] }, mcp: { targets: [] } }
  return Object.fromEntries(
    Object.entries(tree).map(([name, section]) => [
      name,
      Array.isArray(section) ? section : { ...sections[name], ...section },
    ]),
  )
}

describe.each(cases.map((each) => [`${each.kind.name} ${each.name ?? ''}`.trim(), each] as const))(
  '%s',
  (_, each) => {
    const { schema } = each
    const definitions = schema.definitions ?? {}

    it('has an input for each of its parts', () => {
      const seen = new Set<JsonSchema>()
      const visit = (part: JsonSchema): void => {
        if (seen.has(part)) return
        seen.add(part)
        const node = readNode(part, definitions)
        if (node.kind === 'object') for (const field of node.fields) visit(field.schema)
        if (node.kind === 'list') visit(node.item)
        if (node.kind === 'map') visit(node.value)
        if (node.kind === 'alternatives') node.options.forEach(visit)
        // A free value is one in the schema too.
        if (node.kind === 'json') expect(part.properties ?? part.items ?? part.enum).toBeUndefined()
        expect(() => blankValue(part, definitions)).not.toThrow()
      }
      visit(schema)
    })

    it('yields values that the gateway accepts', () => {
      fc.assert(
        fc.property(entered(schema, definitions, 3), (value) => {
          expect(checkValue(value, schema, definitions)).toEqual([])
          const result = check(configSchema, configWith(each, value))
          expect(result.kind === 'valid' ? [] : result.mistakes).toEqual([])
        }),
        { numRuns: 60 },
      )
    })
  },
)

it('accepts the values of the examples', () => {
  const schema = whole as JsonSchema
  const files = globSync('examples/*.yaml')
  expect(files.length).toBeGreaterThan(3)
  for (const file of files) {
    const mistakes = checkValue(parse(readFileSync(file, 'utf8')), schema, schema.definitions ?? {})
    expect([file, mistakes]).toEqual([file, []])
  }
})
