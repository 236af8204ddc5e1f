import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { McpItemKind } from '../../../pipeline/mcp-item.ts'
import { paramsOf } from './json-rpc.ts'

/** What a call is about; `name` is undefined where the call should name something and does not. */
export type CallTarget = {
  kind: McpItemKind
  name: string | undefined
  /** Where the name stands in the message. */
  path: readonly string[]
}

/** A method that lists things: where they are in the result, and which member names one. */
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

/** What a method lists, or undefined for one that lists no tools, prompts or resources. */
export function itemListOf(method: string): ItemList | undefined {
  return lists.get(method)
}

/** The tool, prompt or resource a request is about; undefined for a method that is about none. */
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
