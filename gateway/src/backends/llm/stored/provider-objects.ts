import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { Refusal } from '../../../pipeline/errors.ts'

/** Kinds of objects in the account of a provider that requests name by id. */
export const objectKinds = [
  'conversations',
  'prompts',
  'vectorStores',
  'containers',
  'items',
  'files',
  'skills',
] as const

export type ObjectKind = (typeof objectKinds)[number]

/** Ids of items in a request: those of the provider by those of the client. */
export type ItemIds = ReadonlyMap<string, string>

export type ObjectRules = {
  /** Kinds that clients may name without a check of the owner. */
  permits(kind: ObjectKind): boolean
  /** The id of the provider of an item of this client. */
  openItem(id: string): string | undefined
  /** The id of the provider in the id of any client, without a check. */
  withoutMac(id: string): string | undefined
}

/** Most items with an id: each costs 5 us. */
const maxItemIds = 2_000

const tooManyItems: Refusal = {
  status: 400,
  code: 'invalid_request_body',
  message: `input must have at most ${maxItemIds} items with an id: remove ids of items that contain their content`,
  param: 'input',
}

/**
 * Finds the items of a request for `/v1/responses`. Returns a refusal for an object whose owner is unknown,
 * because the account of the provider is that of all clients.
 */
export function readObjects(
  body: JsonObject,
  { permits, openItem, withoutMac }: ObjectRules,
): ItemIds | Refusal {
  const param = foreignObject(body, permits)
  if (param !== undefined) return refusalOf(param)
  const ids = new Map<string, string>()
  let checked = 0
  const { input } = body
  for (const [index, item] of Array.isArray(input) ? input.entries() : []) {
    if (!isJsonObject(item)) continue
    const { id } = item
    if (typeof id !== 'string') continue
    checked += 1
    if (checked > maxItemIds) return tooManyItems
    const own = openItem(id)
    if (own === undefined && isLookedUp(item) && !permits('items')) return refusalOf(`input[${index}].id`)
    // Providers refuse an id of another key for its length, and do not look up items with content.
    const forwarded = own ?? withoutMac(id)
    if (forwarded !== undefined) ids.set(id, forwarded)
  }
  return ids
}

/** The member that names an object beside the items of the request; undefined without any. */
function foreignObject(
  { conversation, prompt, tools }: JsonObject,
  permits: ObjectRules['permits'],
): string | undefined {
  if (isPresent(conversation) && !permits('conversations')) return 'conversation'
  if (isPresent(prompt) && !permits('prompts')) return 'prompt'
  for (const [index, tool] of Array.isArray(tools) ? tools.entries() : []) {
    if (!isJsonObject(tool)) continue
    if (isPresent(tool['vector_store_ids']) && !permits('vectorStores'))
      return `tools[${index}].vector_store_ids`
    // An object creates a container.
    if (typeof tool['container'] === 'string' && !permits('containers')) return `tools[${index}].container`
    const { environment } = tool
    if (isJsonObject(environment) && isPresent(environment['container_id']) && !permits('containers'))
      return `tools[${index}].environment.container_id`
  }
  return undefined
}

/** Whether a member is neither absent nor null. */
export function isPresent(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null
}

/** Whether the provider finds the content of an item by its id. The type of a reference is optional. */
function isLookedUp({ type, role, encrypted_content: encrypted, result }: JsonObject): boolean {
  if (type === undefined || type === null) return role === undefined
  if (type === 'reasoning') return typeof encrypted !== 'string'
  return type === 'item_reference' || (type === 'image_generation_call' && typeof result !== 'string')
}

/** Refusal of an object whose owner is unknown. */
export function refusalOf(param: string): Refusal {
  return {
    status: 400,
    code: 'object_not_found',
    message: `${param} must not name an object of the provider, unless this client has received its id in a response: send the content instead, or permit the kind by sharedObjects of the model`,
    param,
  }
}
