import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/** Places of cache points, which the configuration selects. */
export type CachePlaces = {
  readonly tools: boolean
  readonly system: boolean
  /** Index of the message; undefined for none. */
  readonly message: number | undefined
}

/** Cache points of one request: https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html. */
const maxPoints = 4

const point = { cachePoint: { type: 'default' } } as const

/**
 * Adds cache points to a request of the Converse API: blocks behind the content that is cached. Points of the
 * client remain, and count toward the limit; a place that has one receives no other.
 */
export function withCachePoints(object: JsonObject, places: CachePlaces): JsonObject {
  const { toolConfig, system, messages } = object
  let left = maxPoints - countPoints(object)
  const changed = { ...object }
  const marked = (list: JsonValue | undefined): JsonValue[] | undefined => {
    if (left <= 0 || !Array.isArray(list) || list.length === 0 || isPoint(list.at(-1))) return undefined
    left -= 1
    return [...list, point]
  }
  // The prefix of a request is tools, system, messages.
  if (places.tools && isJsonObject(toolConfig)) {
    const tools = marked(toolConfig['tools'])
    if (tools !== undefined) changed['toolConfig'] = { ...toolConfig, tools }
  }
  const prompt = places.system ? marked(system) : undefined
  if (prompt !== undefined) changed['system'] = prompt
  const message =
    Array.isArray(messages) && places.message !== undefined ? messages[places.message] : undefined
  const content = isJsonObject(message) ? marked(message['content']) : undefined
  if (content !== undefined && Array.isArray(messages) && places.message !== undefined)
    changed['messages'] = messages.with(places.message, {
      ...(isJsonObject(message) ? message : {}),
      content,
    })
  return changed
}

function isPoint(block: JsonValue | undefined): boolean {
  return isJsonObject(block) && isJsonObject(block['cachePoint'])
}

function countPoints({ toolConfig, system, messages }: JsonObject): number {
  const lists = [
    isJsonObject(toolConfig) ? toolConfig['tools'] : undefined,
    system,
    ...(Array.isArray(messages)
      ? messages.map((turn) => (isJsonObject(turn) ? turn['content'] : undefined))
      : []),
  ]
  return lists.flatMap((list) => (Array.isArray(list) ? list : [])).filter(isPoint).length
}
