import { isObject } from '../../../schema-form/model/value.ts'
import type { McpItem } from '../queries.ts'

/** Name of a tool or prompt; URI or URI template of a resource. */
export function nameOf(item: McpItem): string {
  return textOf(
    item['name'] !== undefined && item['uri'] === undefined && item['uriTemplate'] === undefined
      ? item['name']
      : (item['uri'] ?? item['uriTemplate'] ?? item['name']),
  )
}

/** Title for people, if it differs from the name. */
export function titleOf(item: McpItem): string | undefined {
  const annotations = isObject(item['annotations']) ? item['annotations'] : {}
  const own = item['uri'] === undefined && item['uriTemplate'] === undefined ? undefined : item['name']
  const title = textOf(item['title'] ?? annotations['title'] ?? own)
  return title === '' || title === nameOf(item) ? undefined : title
}

export function descriptionOf(item: McpItem): string | undefined {
  const text = textOf(item['description'])
  return text === '' ? undefined : text
}

/** Hints of a tool, as words. Servers state them: they are no facts. */
export function hintsOf(
  item: McpItem,
): readonly { readonly text: string; readonly tone: 'warn' | 'neutral' }[] {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = isObject(item['annotations'])
    ? item['annotations']
    : {}
  return [
    ...(readOnlyHint === true ? [{ text: 'read-only', tone: 'neutral' as const }] : []),
    ...(destructiveHint === true && readOnlyHint !== true
      ? [{ text: 'destructive', tone: 'warn' as const }]
      : []),
    ...(idempotentHint === true ? [{ text: 'idempotent', tone: 'neutral' as const }] : []),
    ...(openWorldHint === true ? [{ text: 'open world', tone: 'neutral' as const }] : []),
  ]
}

export type Parameter = {
  readonly name: string
  readonly type: string
  readonly required: boolean
  readonly description: string | undefined
}

/** Arguments of a tool or prompt, for display. */
export function parametersOf(item: McpItem): readonly Parameter[] {
  const given = item['arguments']
  if (Array.isArray(given))
    return given.filter(isObject).map((one) => ({
      name: textOf(one['name']),
      type: 'text',
      required: one['required'] === true,
      description: descriptionOf(one),
    }))
  const schema = isObject(item['inputSchema']) ? item['inputSchema'] : {}
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  return Object.entries(properties).map(([name, property]) => ({
    name,
    type: typeText(property),
    required: required.includes(name),
    description: isObject(property) ? descriptionOf(property) : undefined,
  }))
}

function typeText(schema: unknown): string {
  if (!isObject(schema)) return 'any'
  const { type, enum: values } = schema
  if (Array.isArray(values))
    return values
      .map((value) => JSON.stringify(value))
      .join(' | ')
      .slice(0, 200)
  if (type === 'array') return `list of ${typeText(schema['items'])}`
  if (Array.isArray(type)) return type.map(textOf).join(' | ')
  return textOf(type) || 'any'
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Whether an item contains a text. */
export function matches(item: McpItem, search: string): boolean {
  const wanted = search.trim().toLowerCase()
  if (wanted === '') return true
  return [nameOf(item), titleOf(item), descriptionOf(item)].some((text) =>
    text?.toLowerCase().includes(wanted),
  )
}
