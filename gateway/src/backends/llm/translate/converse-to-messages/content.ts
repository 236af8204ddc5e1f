import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { sourceText } from '../citations/converse-citations.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

type ToBlock = (block: JsonObject, path: string) => JsonObject | undefined

/** Blocks of the Converse API as blocks of messages. */
export function toBlocks(value: JsonValue | undefined, path: string, refusals: Refusals): JsonObject[] {
  if (!Array.isArray(value)) {
    refusals.add(path, 'must be a list of blocks')
    return []
  }
  return withCacheMarks(value, path, refusals, (block, at) => toBlock(block, at, refusals))
}

/** Translates the items of a list; a cache point marks the item before it. */
export function withCacheMarks(
  list: readonly JsonValue[],
  path: string,
  refusals: Refusals,
  toOne: ToBlock,
): JsonObject[] {
  const blocks: JsonObject[] = []
  for (const [index, item] of list.entries()) {
    const at = `${path}[${index}]`
    if (!isJsonObject(item)) {
      refusals.add(at, 'must be an object')
      continue
    }
    const { cachePoint } = item
    const last = blocks.at(-1)
    if (isJsonObject(cachePoint)) {
      const { ttl } = cachePoint
      if (last) last.cache_control = { type: 'ephemeral', ...(isAbsent(ttl) ? undefined : { ttl }) }
      continue
    }
    const block = toOne(item, at)
    if (block !== undefined) blocks.push(block)
  }
  return blocks
}

function toBlock(block: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const { text, image, audio, document, toolUse, toolResult, reasoningContent, guardContent, searchResult } =
    block
  if (typeof text === 'string') return { type: 'text', text }
  if (isJsonObject(image)) return toImage(image, `${path}.image`, refusals)
  if (isJsonObject(audio) && refusals.audio) return toAudio(audio, `${path}.audio`, refusals)
  if (isJsonObject(document)) return toDocument(document, `${path}.document`, refusals)
  if (isJsonObject(toolUse)) {
    const { toolUseId, name, input } = toolUse
    return { type: 'tool_use', id: toolUseId ?? '', name: name ?? '', input: input ?? {} }
  }
  if (isJsonObject(toolResult)) return toToolResult(toolResult, `${path}.toolResult`, refusals)
  if (isJsonObject(reasoningContent)) return toThinking(reasoningContent)
  if (isJsonObject(searchResult)) return toSearchResult(searchResult)
  // Citations of an earlier response: those of searches are valid for their own provider only.
  if (isJsonObject(block.citationsContent))
    return { type: 'text', text: sourceText(block.citationsContent.content) }
  const guarded = isJsonObject(guardContent) ? guardContent.text : undefined
  if (isJsonObject(guarded)) return { type: 'text', text: guarded.text ?? '' }
  refusals.add(path, `a block with ${Object.keys(block)[0] ?? 'no content'} cannot be translated`)
  return undefined
}

function toImage({ format, source }: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const bytes = isJsonObject(source) ? source.bytes : undefined
  if (typeof bytes === 'string' && typeof format === 'string')
    return { type: 'image', source: { type: 'base64', media_type: `image/${format}`, data: bytes } }
  refusals.add(`${path}.source`, 'must have bytes: files in S3 exist in Amazon Bedrock only')
  return undefined
}

function toAudio({ format, source }: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const bytes = isJsonObject(source) ? source.bytes : undefined
  if (typeof bytes === 'string' && typeof format === 'string')
    return { type: 'audio', source: { type: 'base64', media_type: `audio/${format}`, data: bytes } }
  refusals.add(`${path}.source`, 'must have bytes: files in S3 exist in Amazon Bedrock only')
  return undefined
}

/** Formats whose bytes are text. */
const textFormats: ReadonlySet<JsonValue> = new Set(['txt', 'md', 'csv', 'html'])

function toDocument(
  { format, name, source, context, citations }: JsonObject,
  path: string,
  refusals: Refusals,
): JsonObject | undefined {
  const { bytes, text, content } = isJsonObject(source) ? source : {}
  const translated = documentSource(format, { bytes, text, content })
  if (translated === undefined) {
    refusals.add(`${path}.source`, 'must be a text, or the bytes of a PDF or a text')
    return undefined
  }
  const isCited = isJsonObject(citations) && citations.enabled === true
  return {
    type: 'document',
    source: translated,
    ...(isAbsent(name) ? undefined : { title: name }),
    ...(isAbsent(context) ? undefined : { context }),
    ...(isCited ? { citations: { enabled: true } } : undefined),
  }
}

type DocumentSource = Record<'bytes' | 'text' | 'content', JsonValue | undefined>

function documentSource(
  format: JsonValue | undefined,
  { bytes, text, content }: DocumentSource,
): JsonObject | undefined {
  if (typeof text === 'string') return { type: 'text', media_type: 'text/plain', data: text }
  if (Array.isArray(content)) {
    const texts = content.map((part) => ({ type: 'text', text: isJsonObject(part) ? (part.text ?? '') : '' }))
    return { type: 'content', content: texts }
  }
  if (typeof bytes !== 'string') return undefined
  if (format === 'pdf') return { type: 'base64', media_type: 'application/pdf', data: bytes }
  if (!textFormats.has(format ?? 'txt')) return undefined
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(bytes, 'base64').toString() }
}

function toToolResult(
  { toolUseId, content, status }: JsonObject,
  path: string,
  refusals: Refusals,
): JsonObject {
  const list = Array.isArray(content) ? content : []
  const blocks = withCacheMarks(list, `${path}.content`, refusals, (block, at) =>
    block.json === undefined
      ? toBlock(block, at, refusals)
      : { type: 'text', text: JSON.stringify(block.json) },
  )
  return {
    type: 'tool_result',
    tool_use_id: toolUseId ?? '',
    content: blocks,
    ...(status === 'error' ? { is_error: true } : undefined),
  }
}

/** Thinking of another model has no signature, and is left out. */
function toThinking({ reasoningText, redactedContent }: JsonObject): JsonObject | undefined {
  if (typeof redactedContent === 'string') return { type: 'redacted_thinking', data: redactedContent }
  const { text, signature } = isJsonObject(reasoningText) ? reasoningText : {}
  if (typeof signature !== 'string' || signature === '') return undefined
  return { type: 'thinking', thinking: text ?? '', signature }
}

function toSearchResult({ source, title, content, citations }: JsonObject): JsonObject {
  const texts = (Array.isArray(content) ? content : []).map((part) => ({
    type: 'text',
    text: isJsonObject(part) ? (part.text ?? '') : '',
  }))
  const isCited = isJsonObject(citations) && citations.enabled === true
  return {
    type: 'search_result',
    source: source ?? '',
    title: title ?? '',
    content: texts,
    ...(isCited ? { citations: { enabled: true } } : undefined),
  }
}
