import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { ClientEndpoint } from '../request/endpoints.ts'
import { findPart, type PartPlaces } from './find-part.ts'
import type { ObjectKind, SealedKind } from './object-kinds.ts'

/** Ids of objects in a request: those of the provider by those of the client. */
export type RequestIds = ReadonlyMap<string, string>

export type ObjectRules = {
  /** Kinds that clients may name without a check of the owner. */
  permits(kind: ObjectKind): boolean
  /** The id of the provider of an object of this client. */
  open(id: string, kind: SealedKind): string | undefined
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
 * Finds the objects that a request names. Returns a refusal for one whose owner is unknown, because the
 * account of the provider is that of all clients.
 */
export function readObjects(
  endpoint: ClientEndpoint,
  body: JsonObject,
  rules: ObjectRules,
): RequestIds | Refusal {
  const found: FoundIds = { ids: new Map(), opened: 0 }
  switch (endpoint) {
    case 'responses':
      return readResponses(body, found, rules) ?? found.ids
    case 'chat':
      return readAudio(body, found, rules) ?? found.ids
    case 'messages':
      return readContainer(body, found, rules) ?? found.ids
    default:
      return found.ids
  }
}

type FoundIds = { readonly ids: Map<string, string>; opened: number }

/** Reads a request for `/v1/responses`. */
function readResponses(body: JsonObject, found: FoundIds, rules: ObjectRules): Refusal | undefined {
  const { permits, open, withoutMac } = rules
  const { ids } = found
  const param =
    foreignObject(body, permits) ??
    findPart(body, containerPlaces, (part) => foreignContainer(part, found, rules))
  if (param !== undefined) return refusalOf(param)
  let checked = 0
  const { input } = body
  for (const [index, item] of Array.isArray(input) ? input.entries() : []) {
    if (!isJsonObject(item)) continue
    const { id } = item
    if (typeof id !== 'string') continue
    checked += 1
    if (checked > maxItemIds) return tooManyItems
    const own = open(id, 'item')
    if (own === undefined && isLookedUp(item) && !permits('items')) return refusalOf(`input[${index}].id`)
    // Providers refuse an id of another key for its length, and do not look up items with content.
    const forwarded = own ?? withoutMac(id)
    if (forwarded !== undefined) ids.set(id, forwarded)
  }
  return undefined
}

/** Members with containers: calls of tools, citations of files, and tools, also those found by a search. */
const containerPlaces: PartPlaces = {
  roots: ['tools', 'input'],
  nested: ['environment', 'content', 'annotations', 'tools', 'output'],
}

/** Tools name a container, or create one by an object. */
function foreignContainer(part: JsonObject, found: FoundIds, rules: ObjectRules): string | undefined {
  const { container, container_id: id } = part
  if (!isOwned(id, 'container', found, rules)) return '.container_id'
  return isJsonObject(container) || isOwned(container, 'container', found, rules) ? undefined : '.container'
}

/** Reads the earlier audio of a model, which chat completions name by id. */
function readAudio({ messages }: JsonObject, found: FoundIds, rules: ObjectRules): Refusal | undefined {
  for (const [index, message] of Array.isArray(messages) ? messages.entries() : []) {
    const audio = isJsonObject(message) ? message['audio'] : undefined
    if (!isPresent(audio)) continue
    const id = isJsonObject(audio) ? audio['id'] : audio
    if (!isOwned(id, 'audio', found, rules)) return refusalOf(`messages[${index}].audio.id`)
  }
  return undefined
}

/** Reads the container of a request of messages: its id, or an object with it. */
function readContainer({ container }: JsonObject, found: FoundIds, rules: ObjectRules): Refusal | undefined {
  const isObject = isJsonObject(container)
  return isOwned(isObject ? container['id'] : container, 'container', found, rules)
    ? undefined
    : refusalOf(isObject ? 'container.id' : 'container')
}

/** Whether a member is absent, or names an object of this client, or its kind is shared. */
function isOwned(
  id: JsonValue | undefined,
  kind: 'container' | 'audio',
  found: FoundIds,
  { open, permits }: ObjectRules,
): boolean {
  if (!isPresent(id)) return true
  if (typeof id !== 'string') return permits(sharedKinds[kind])
  if (found.ids.has(id)) return true
  found.opened += 1
  if (found.opened > maxItemIds) return false
  const own = open(id, kind)
  if (own !== undefined) found.ids.set(id, own)
  return own !== undefined || permits(sharedKinds[kind])
}

/** Kinds that permit objects of others. */
const sharedKinds = { container: 'containers', audio: 'items' } as const

/** The member that names an object beside the items of the request; undefined without any. */
function foreignObject(
  { conversation, prompt, tools }: JsonObject,
  permits: ObjectRules['permits'],
): string | undefined {
  if (isPresent(conversation) && !permits('conversations')) return 'conversation'
  if (isPresent(prompt) && !permits('prompts')) return 'prompt'
  for (const [index, tool] of Array.isArray(tools) ? tools.entries() : []) {
    if (isJsonObject(tool) && isPresent(tool['vector_store_ids']) && !permits('vectorStores'))
      return `tools[${index}].vector_store_ids`
  }
  return undefined
}

/** Whether responses to a request may have ids of objects. */
export function sealsIds(endpoint: ClientEndpoint | 'passthrough', body: JsonObject | undefined): boolean {
  switch (endpoint) {
    case 'responses':
      return true
    case 'chat':
      return isPresent(body?.['audio']) || isPresent(body?.['modalities'])
    case 'messages':
      return isPresent(body?.['container']) || hasServerTool(body?.['tools'])
    default:
      return false
  }
}

/** Tools that Anthropic executes may run in a container. */
function hasServerTool(tools: JsonValue | undefined): boolean {
  return (
    Array.isArray(tools) &&
    tools.some((tool) => isJsonObject(tool) && isPresent(tool['type']) && tool['type'] !== 'custom')
  )
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
