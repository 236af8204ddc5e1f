import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { PromptCachingConfig } from './config.ts'
import { withCachePoints } from './converse-caching.ts'
import { isTextPart, textParts } from './prompts.ts'
import type { RewriteObject } from './rewrite-object.ts'

/** Markers of one request: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching. */
const maxMarkers = 4

/** Blocks that may not have a marker. */
const unmarkable: ReadonlySet<string> = new Set(['thinking', 'redacted_thinking'])

/**
 * Compiles `promptCaching` of requests in the messages API and the Converse API. Markers of the client
 * remain, and count toward the limit of the API; a place that has one is not marked again.
 */
export function compilePromptCaching({
  cacheSystem = true,
  cacheMessages = true,
  cacheTools = false,
  minTokens = 1024,
  cacheMessageOffset = 0,
}: PromptCachingConfig): RewriteObject {
  return (object, endpoint) => {
    if (endpoint === 'converse') {
      return withCachePoints(object, {
        tools: cacheTools,
        system: cacheSystem && hasTokens(object['system'], minTokens),
        message: cacheMessages ? markedIndex(object['messages'], cacheMessageOffset) : undefined,
      })
    }
    if (endpoint !== 'messages' && endpoint !== 'count_tokens') return object
    let left = maxMarkers - countMarkers(object)
    let changed = object
    const apply = (next: JsonObject) => {
      if (next !== changed) left -= 1
      changed = next
    }
    // The prefix of a request is tools, system, messages.
    if (cacheTools && left > 0) apply(withMarkedList(changed, 'tools'))
    if (cacheSystem && left > 0 && hasTokens(changed['system'], minTokens)) apply(withMarkedSystem(changed))
    if (cacheMessages && left > 0) apply(withMarkedMessage(changed, cacheMessageOffset))
    return changed
  }
}

const marker = { type: 'ephemeral' } as const

function withMarkedList(object: JsonObject, name: string): JsonObject {
  const list = object[name]
  if (!Array.isArray(list)) return object
  const marked = withMarkedEnd(list)
  return marked === list ? object : { ...object, [name]: [...marked] }
}

function withMarkedSystem(object: JsonObject): JsonObject {
  const { system } = object
  const parts = textParts(system)
  const marked = withMarkedEnd(parts)
  return marked === parts ? object : { ...object, system: [...marked] }
}

/** Index of the message before the last one, or of an earlier one: the last message is new in each turn. */
function markedIndex(messages: JsonValue | undefined, offset: number): number | undefined {
  if (!Array.isArray(messages) || messages.length < 2) return undefined
  return Math.max(0, messages.length - 2 - offset)
}

function withMarkedMessage(object: JsonObject, offset: number): JsonObject {
  const { messages } = object
  const index = markedIndex(messages, offset)
  if (!Array.isArray(messages) || index === undefined) return object
  const message = messages[index]
  if (!isJsonObject(message)) return object
  const parts = textParts(message['content'])
  const marked = withMarkedEnd(parts)
  if (marked === parts) return object
  return { ...object, messages: messages.with(index, { ...message, content: [...marked] }) }
}

/** The list with a marker at its last item that may have one; the same list if it has one there. */
function withMarkedEnd(list: readonly JsonValue[]): readonly JsonValue[] {
  const index = list.findLastIndex(isMarkable)
  const item = list[index]
  if (!isJsonObject(item) || hasMarker(item)) return list
  return list.with(index, { ...item, cache_control: marker })
}

function isMarkable(item: JsonValue): boolean {
  if (!isJsonObject(item) || unmarkable.has(String(item['type']))) return false
  return !isTextPart(item) || item.text !== ''
}

function hasMarker(item: JsonValue): boolean {
  return isJsonObject(item) && isJsonObject(item['cache_control'])
}

function countMarkers(object: JsonObject): number {
  const { tools, system, messages } = object
  const contents = Array.isArray(messages)
    ? messages.flatMap((message) => (isJsonObject(message) ? textParts(message['content']) : []))
    : []
  const blocks = [...(Array.isArray(tools) ? tools : []), ...textParts(system), ...contents]
  return blocks.filter(hasMarker).length + (hasMarker(object) ? 1 : 0)
}

/** Tokens per ten words, at least. */
const tokensPerTenWords = 13

/** Whether a prompt has about `tokens` tokens. Counts words up to this number only: prompts may be long. */
function hasTokens(system: JsonValue | undefined, tokens: number): boolean {
  let missing = Math.ceil((tokens * 10) / tokensPerTenWords)
  for (const part of textParts(system)) {
    if (missing <= 0) break
    if (isTextPart(part)) missing -= countWords(part.text, missing)
  }
  return missing <= 0
}

/** Words of a text, at most `limit`. */
function countWords(text: string, limit: number): number {
  const word = /\S+/g
  let count = 0
  while (count < limit && word.test(text)) count += 1
  return count
}
