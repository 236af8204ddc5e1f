import { type FormNode, readNode } from './node.ts'
import type { Definitions, JsonSchema } from './schema.ts'

/** Initial value of a field that a user adds: empty, but of the right form. Undefined where a choice is needed. */
export function blankValue(schema: JsonSchema, definitions: Definitions): unknown {
  return blankOf(readNode(schema, definitions), definitions)
}

function blankOf(node: FormNode, definitions: Definitions): unknown {
  switch (node.kind) {
    case 'text':
      return ''
    case 'boolean':
      return node.defaultValue !== true
    case 'list': {
      const first = node.minItems > 0 ? blankValue(node.item, definitions) : undefined
      return first === undefined ? [] : [first]
    }
    case 'map':
    case 'json':
      return {}
    case 'object':
      return blankObject(node, definitions)
    case 'alternatives': {
      const [first] = node.options
      return first && blankValue(first, definitions)
    }
    case 'choice':
    case 'number':
      return undefined
  }
}

/** Required objects and lists are present from the start; required texts stay absent until they are filled. */
function blankObject(
  { fields, oneOf }: Extract<FormNode, { kind: 'object' }>,
  definitions: Definitions,
): object {
  const entries = fields.flatMap(({ name, schema, required }) => {
    if (!required || oneOf.includes(name)) return []
    const blank = blankValue(schema, definitions)
    return typeof blank === 'object' ? [[name, blank] as const] : []
  })
  return Object.fromEntries(entries)
}
