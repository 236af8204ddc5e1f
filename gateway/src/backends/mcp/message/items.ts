import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { McpItemKind } from '../../../pipeline/mcp/mcp-item.ts'
import { paramsOf } from './json-rpc.ts'

/** Item of a call; `name` is undefined if the request lacks it. */
export type CallTarget = {
  kind: McpItemKind
  name: string | undefined
  /** Path of the name in the message. */
  path: readonly string[]
}

/** Result of a list method: kind of its items, member of the result, and name field of an item. */
export type ItemList = { kind: McpItemKind; member: string; nameField: string }

const lists: ReadonlyMap<string, ItemList> = new Map([
  ['tools/list', { kind: 'tool', member: 'tools', nameField: 'name' }],
  ['prompts/list', { kind: 'prompt', member: 'prompts', nameField: 'name' }],
  ['resources/list', { kind: 'resource', member: 'resources', nameField: 'uri' }],
  ['resources/templates/list', { kind: 'resource', member: 'resourceTemplates', nameField: 'uriTemplate' }],
])

const byName = { path: ['params', 'name'], member: 'name' } as const
const byUri = { path: ['params', 'uri'], member: 'uri' } as const
const calls: ReadonlyMap<string, { kind: McpItemKind; path: readonly string[]; member: string }> = new Map([
  ['tools/call', { kind: 'tool', ...byName }],
  ['prompts/get', { kind: 'prompt', ...byName }],
  ['resources/read', { kind: 'resource', ...byUri }],
  ['resources/subscribe', { kind: 'resource', ...byUri }],
  ['resources/unsubscribe', { kind: 'resource', ...byUri }],
])

/** Item list of a method; undefined for other methods. */
export function itemListOf(method: string): ItemList | undefined {
  return lists.get(method)
}

/** Tool, prompt or resource of a request; undefined for methods without one. */
export function callTargetOf(request: JsonObject): CallTarget | undefined {
  const { method } = request
  if (typeof method !== 'string') return undefined
  if (method === 'completion/complete') return completionTarget(paramsOf(request))
  const call = calls.get(method)
  if (call === undefined) return undefined
  const name = paramsOf(request)[call.member]
  return { kind: call.kind, name: typeof name === 'string' ? name : undefined, path: call.path }
}

function completionTarget({ ref }: JsonObject): CallTarget {
  const reference = isJsonObject(ref) ? ref : {}
  const { type, name, uri } = reference
  if (type === 'ref/resource') {
    return {
      kind: 'resource',
      name: typeof uri === 'string' ? uri : undefined,
      path: ['params', 'ref', 'uri'],
    }
  }
  const known = type === 'ref/prompt' && typeof name === 'string'
  return { kind: 'prompt', name: known ? name : undefined, path: ['params', 'ref', 'name'] }
}
