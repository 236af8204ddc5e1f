import type { Suggestion, Suggestions } from '../../editors/code-editor.tsx'
import { type FormNode, readNode } from '../model/node.ts'
import { type Definitions, type JsonSchema, resolveSchema } from '../model/schema.ts'
import { yamlPlaceAt } from './yaml-place.ts'

/** Keys and values that the schema permits at an offset of YAML text. */
export function suggestYaml(text: string, offset: number, schema: JsonSchema): Suggestions | undefined {
  const place = yamlPlaceAt(text, offset)
  if (place === undefined) return undefined
  const { path, key, from, siblings } = place
  const definitions = schema.definitions ?? {}
  const around = nodesAt(schema, path, definitions)
  if (key !== undefined) {
    const values = nodesBelow(around, key, definitions).flatMap(valuesOf)
    return { from, items: unique(values) }
  }
  const items = around.flatMap((node) =>
    node.kind === 'object' ? keysOf(node, siblings, definitions) : valuesOf(node),
  )
  return { from, items: unique(items) }
}

/** Nodes that a path of YAML leads to: several where alternatives fit. */
function nodesAt(
  schema: JsonSchema,
  path: readonly (string | number)[],
  definitions: Definitions,
): readonly FormNode[] {
  return path.reduce<readonly FormNode[]>(
    (nodes, step) => nodesBelow(nodes, step, definitions),
    plainNodes(schema, definitions),
  )
}

function nodesBelow(
  nodes: readonly FormNode[],
  step: string | number,
  definitions: Definitions,
): readonly FormNode[] {
  return nodes.flatMap((node) => {
    if (node.kind === 'list') return typeof step === 'number' ? plainNodes(node.item, definitions) : []
    if (node.kind === 'map') return plainNodes(node.value, definitions)
    if (node.kind !== 'object') return []
    const field = node.fields.find(({ name }) => name === step)
    return field ? plainNodes(field.schema, definitions) : []
  })
}

function plainNodes(schema: JsonSchema, definitions: Definitions): readonly FormNode[] {
  const node = readNode(schema, definitions)
  return node.kind === 'alternatives'
    ? node.options.flatMap((option) => plainNodes(option, definitions))
    : [node]
}

function keysOf(
  { fields, oneOf }: Extract<FormNode, { kind: 'object' }>,
  siblings: readonly string[],
  definitions: Definitions,
): readonly Suggestion[] {
  const present = new Set(siblings)
  const chosen = oneOf.some((name) => present.has(name))
  return fields
    .filter(({ name }) => !present.has(name) && !(chosen && oneOf.includes(name)))
    .map(({ name, schema, required }) => {
      const resolved = resolveSchema(schema, definitions)
      const { description } = resolved
      const { kind } = readNode(resolved, definitions)
      return {
        label: name,
        insert: kind === 'object' || kind === 'map' || kind === 'list' ? `${name}:` : `${name}: `,
        detail: required ? 'required' : kind,
        kind: 'property' as const,
        ...(description === undefined ? {} : { info: description }),
      }
    })
}

function valuesOf(node: FormNode): readonly Suggestion[] {
  const values =
    node.kind === 'boolean'
      ? [true, false]
      : node.kind === 'choice'
        ? node.values
        : [node.defaultValue, node.example].filter(
            (value) => value !== undefined && typeof value !== 'object',
          )
  return values.map((value) => ({
    label: String(value),
    kind: 'enum',
    ...(value === node.defaultValue ? { detail: 'default' } : {}),
  }))
}

function unique(items: readonly Suggestion[]): readonly Suggestion[] {
  return [...new Map(items.map((item) => [item.label, item])).values()]
}
