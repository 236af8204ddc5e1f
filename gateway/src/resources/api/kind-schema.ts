import { valueAt } from '../../schema/path.ts'
import { isTree } from '../hybrid/overlay.ts'
import { isKeyPolicy, type Kind } from '../kinds.ts'
import type { Json } from './openapi-part.ts'

/**
 * JSON Schema of one record of a kind, with the definitions that it refers to. `name` is the field of a
 * policy; without it, the schema of a policies kind is that of an object of all its policies. Undefined if
 * there is no such policy.
 */
export function kindSchema(kind: Kind, configSchema: object, name: string | undefined): Json | undefined {
  const { placement } = kind
  if (placement.kind !== 'policies') return selfContained(recordSchema(kind, configSchema), configSchema)
  const policies = Object.fromEntries(
    policySchemas(kind, configSchema).map(({ field, schema }) => [field, schema]),
  )
  if (name === undefined) {
    const schema = { type: 'object', properties: policies, additionalProperties: false }
    return selfContained({ title: kind.name, description: kind.doc, ...schema }, configSchema)
  }
  const schema = Object.hasOwn(policies, name) ? policies[name] : undefined
  return schema && selfContained(schema, configSchema)
}

/** JSON Schema of the value of a record. References are those of the configuration schema. */
export function recordSchema(kind: Kind, configSchema: object): Json {
  const { placement } = kind
  const at = (path: readonly string[]) => schemaAt(configSchema, path)
  switch (placement.kind) {
    case 'list':
    case 'keys':
      return { ...at([...placement.path, 'items']), title: kind.name }
    case 'map': {
      const entry = at([...placement.path, 'additionalProperties'])
      const fields = isTree(entry['properties']) ? entry['properties'] : {}
      const required = Array.isArray(entry['required']) ? entry['required'] : []
      const name = { type: 'string', description: 'Name: the key in the map.' }
      return { ...entry, title: kind.name, properties: { name, ...fields }, required: ['name', ...required] }
    }
    case 'policies':
      return {
        title: kind.name,
        description: `${kind.doc} The id is the name of the field.`,
        anyOf: policySchemas(kind, configSchema).map(({ schema }) => schema),
      }
    case 'settings': {
      const fields = at(placement.path)['properties']
      const own = Object.entries(isTree(fields) ? fields : {}).filter(([field]) =>
        placement.fields.includes(field),
      )
      return {
        title: kind.name,
        description: kind.doc,
        type: 'object',
        properties: Object.fromEntries(own),
        additionalProperties: false,
      }
    }
    case 'catalog': {
      const inline = at([...placement.path, 'items', 'inline'])
      return {
        title: kind.name,
        description: kind.doc,
        type: 'object',
        properties: Object.fromEntries(placement.fields.map((field) => [field, inline])),
        additionalProperties: false,
      }
    }
  }
}

function policySchemas(kind: Kind, configSchema: object): { field: string; schema: Json }[] {
  const fields = schemaAt(configSchema, kind.placement.path)['properties']
  return Object.entries(isTree(fields) ? fields : {}).map(([field, schema]) => ({
    field,
    schema: policyVariant(kind, field, resolved(schema, configSchema)),
  }))
}

function policyVariant(kind: Kind, field: string, variant: Json): Json {
  if (!isKeyPolicy(kind, field) || !isTree(variant['properties'])) return { title: field, ...variant }
  const { keys: _, ...rest } = variant['properties']
  const required = Array.isArray(variant['required'])
    ? variant['required'].filter((name) => name !== 'keys')
    : []
  return { title: field, ...variant, properties: rest, required }
}

/** The schema at a path of the configuration: through `properties`, except for keywords of JSON Schema. */
function schemaAt(config: object, path: readonly string[]): Json {
  let here = resolved(config, config)
  for (const step of path) {
    const isWord = step === 'items' || step === 'additionalProperties'
    here = resolved(valueAt(here, isWord ? [step] : ['properties', step]), config)
  }
  return here
}

const definitionsPath = '#/definitions/'

function resolved(schema: unknown, config: object): Json {
  const reference = valueAt(schema, ['$ref'])
  if (typeof reference !== 'string') return isTree(schema) ? schema : {}
  return resolved(valueAt(config, ['definitions', reference.slice(definitionsPath.length)]), config)
}

/** The schema with the definitions that it refers to, directly or not. */
function selfContained(schema: Json, config: object): Json {
  const used = new Map<string, unknown>()
  const collect = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, member] of Object.entries(value)) {
      if (key !== '$ref' || typeof member !== 'string') {
        collect(member)
        continue
      }
      const name = member.slice(definitionsPath.length)
      if (used.has(name)) continue
      const definition = valueAt(config, ['definitions', name])
      used.set(name, definition)
      collect(definition)
    }
  }
  collect(schema)
  const head = { $schema: 'http://json-schema.org/draft-07/schema#', ...schema }
  return used.size === 0 ? head : { ...head, definitions: Object.fromEntries(used) }
}
