import { matchOption } from './alternatives.ts'
import { labelOf } from './label.ts'
import { type FormNode, type NodeOf, readNode } from './node.ts'
import type { Definitions, JsonSchema } from './schema.ts'
import { type FieldPath, isMasked, isObject } from './value.ts'

/** Mistake in a value, with the place of the field. */
export type FieldMistake = { readonly path: FieldPath; readonly message: string }

/** Mistakes that need no server: missing fields, wrong forms and bounds. Unknown members are the server's. */
export function checkValue(value: unknown, schema: JsonSchema, definitions: Definitions): FieldMistake[] {
  const mistakes: FieldMistake[] = []
  const report = (path: FieldPath, message: string) => {
    mistakes.push({ path, message })
  }
  visit(value, schema, [])
  return mistakes

  function visit(here: unknown, hereSchema: JsonSchema, path: FieldPath): void {
    const node = readNode(hereSchema, definitions)
    if (node.acceptsReference && typeof here === 'string' && here.startsWith('$')) return
    if (node.secret && isMasked(here)) return
    const message = mistakeIn(here, node)
    if (message !== undefined) report(path, message)
    else visitInside(here, node, path)
  }

  function visitInside(here: unknown, node: FormNode, path: FieldPath): void {
    if (node.kind === 'alternatives') {
      const option = node.options[matchOption(here, node.options, definitions)]
      if (option === undefined) report(path, 'is not of a known form')
      else visit(here, option, path)
    }
    if (node.kind === 'list' && Array.isArray(here))
      for (const [index, item] of here.entries()) visit(item, node.item, [...path, index])
    if (!isObject(here)) return
    if (node.kind === 'map')
      for (const [key, member] of Object.entries(here)) visit(member, node.value, [...path, key])
    if (node.kind === 'object') visitFields(here, node, path)
  }

  function visitFields(
    here: Readonly<Record<string, unknown>>,
    node: NodeOf<'object'>,
    path: FieldPath,
  ): void {
    for (const { name, schema: fieldSchema, required } of node.fields) {
      const member = Object.hasOwn(here, name) ? here[name] : undefined
      if (member !== undefined) visit(member, fieldSchema, [...path, name])
      else if (required) report([...path, name], 'is required')
    }
    const present = node.oneOf.filter((name) => here[name] !== undefined)
    if (node.oneOf.length > 0 && present.length !== 1)
      report(path, `must have exactly one of ${node.oneOf.map(labelOf).join(', ')}`)
  }
}

function mistakeIn(value: unknown, node: FormNode): string | undefined {
  switch (node.kind) {
    case 'text':
      return textMistake(value, node)
    case 'number':
      return numberMistake(value, node)
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be on or off'
    case 'choice':
      if (node.values.includes(value)) return undefined
      if (node.number !== undefined && typeof value === 'number') return boundsMistake(value, node.number)
      return `must be one of ${node.values.join(', ')}`
    case 'list':
      if (!Array.isArray(value)) return 'must be a list'
      if (value.length < node.minItems) return `must have at least ${count(node.minItems, 'item')}`
      return value.length > node.maxItems ? `must have at most ${count(node.maxItems, 'item')}` : undefined
    case 'map':
    case 'object':
      return isObject(value) ? undefined : 'must be an object'
    case 'alternatives':
    case 'json':
      return undefined
  }
}

function textMistake(value: unknown, node: NodeOf<'text'>): string | undefined {
  if (typeof value !== 'string') return 'must be a text'
  if (value.length < node.minLength)
    return node.minLength === 1 ? 'must not be empty' : tooShort(node.minLength)
  if (value.length > node.maxLength) return `must have at most ${count(node.maxLength, 'character')}`
  if (node.pattern === undefined || value.includes('***') || new RegExp(node.pattern).test(value))
    return undefined
  return formatMistakes[node.format ?? ''] ?? 'does not have the required form'
}

const formatMistakes: Readonly<Record<string, string>> = {
  duration: 'must be a duration such as 500ms, 10s or 1h30m',
  'host:port': 'must be host:port, such as 127.0.0.1:8080',
  'service address': 'must be host:port, such as 127.0.0.1:8080',
  url: 'must start with http:// or https://',
  file: 'must be the path of a file',
}

function tooShort(minLength: number): string {
  return `must have at least ${count(minLength, 'character')}`
}

function numberMistake(value: unknown, node: NodeOf<'number'>): string | undefined {
  if (typeof value === 'string' && node.acceptsText && value !== '' && Number.isFinite(Number(value)))
    return boundsMistake(Number(value), node)
  if (typeof value !== 'number') return node.integer ? 'must be a whole number' : 'must be a number'
  if (node.integer && !Number.isInteger(value)) return 'must be a whole number'
  return boundsMistake(value, node)
}

function boundsMistake(
  value: number,
  { minimum, maximum }: { minimum: number | undefined; maximum: number | undefined },
): string | undefined {
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`
  return maximum !== undefined && value > maximum ? `must be at most ${maximum}` : undefined
}

function count(number: number, unit: string): string {
  return `${number} ${unit}${number === 1 ? '' : 's'}`
}
