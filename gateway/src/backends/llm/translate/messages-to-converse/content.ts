import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Context of one request: documents have different names. */
export type DocumentNames = { readonly used: Set<string> }

type ToBlock = (
  block: JsonObject,
  path: string,
  names: DocumentNames,
  refusals: Refusals,
) => JsonObject | undefined

/** Content of a turn as blocks of the Converse API; cache marks become blocks of their own. */
export function toConverseContent(
  content: JsonValue | undefined,
  path: string,
  names: DocumentNames,
  refusals: Refusals,
): JsonObject[] {
  return toBlocks(content, path, names, refusals, toBlock)
}

/** Content that may contain only text: system prompts. */
export function toSystem(content: JsonValue | undefined, refusals: Refusals): JsonObject[] | undefined {
  if (isAbsent(content)) return undefined
  const blocks = toBlocks(content, 'system', { used: new Set() }, refusals, toTextBlock)
  return blocks.length === 0 ? undefined : blocks
}

/** The block of a cache mark; undefined without one. */
export function cachePointOf(marked: JsonObject): JsonObject | undefined {
  const { cache_control: mark } = marked
  if (!isJsonObject(mark)) return undefined
  return {
    cachePoint: { type: 'default', ...(typeof mark.ttl === 'string' ? { ttl: mark.ttl } : undefined) },
  }
}

function toBlocks(
  content: JsonValue | undefined,
  path: string,
  names: DocumentNames,
  refusals: Refusals,
  toOne: ToBlock,
): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }]
  if (!Array.isArray(content)) {
    refusals.add(path, 'must be a string or a list of blocks')
    return []
  }
  const blocks: JsonObject[] = []
  for (const [index, block] of content.entries()) {
    const at = `${path}[${index}]`
    if (!isJsonObject(block)) {
      refusals.add(at, 'must be an object')
      continue
    }
    const translated = toOne(block, at, names, refusals)
    if (translated !== undefined) blocks.push(translated)
    const cachePoint = cachePointOf(block)
    if (cachePoint !== undefined) blocks.push(cachePoint)
  }
  return blocks
}

function toBlock(
  block: JsonObject,
  path: string,
  names: DocumentNames,
  refusals: Refusals,
): JsonObject | undefined {
  switch (block.type) {
    case 'image':
      return toImage(block, path, refusals)
    case 'audio':
      return toAudio(block, path, refusals)
    case 'document':
      return toDocument(block, path, names, refusals)
    case 'tool_use':
      return toToolUse(block, path, refusals)
    case 'tool_result':
      return toToolResult(block, path, names, refusals)
    case 'search_result':
      return toSearchResult(block, path, refusals)
    case 'thinking':
      return toReasoning(block)
    case 'redacted_thinking':
      return { reasoningContent: { redactedContent: block.data ?? '' } }
    default:
      return toTextBlock(block, path, names, refusals)
  }
}

/** Citations of a text are contained in it. Empty texts are refused by the service. */
const toTextBlock: ToBlock = (block, path, _, refusals) => {
  if (block.type !== 'text') {
    refusals.add(`${path}.type`, `blocks of type "${block.type}" cannot be translated for the Converse API`)
    return undefined
  }
  if (typeof block.text === 'string') return block.text === '' ? undefined : { text: block.text }
  refusals.add(`${path}.text`, 'must be a string')
  return undefined
}

/** Models that sign their thinking refuse a block without a signature, such as one of another model. */
function toReasoning({ thinking, signature }: JsonObject): JsonObject | undefined {
  if (typeof signature !== 'string' || signature === '') return undefined
  return { reasoningContent: { reasoningText: { text: thinking ?? '', signature } } }
}

const imageFormats: ReadonlyMap<JsonValue, string> = new Map([
  ['image/jpeg', 'jpeg'],
  ['image/png', 'png'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
])

function toImage({ source }: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const { type, media_type: mediaType, data } = isJsonObject(source) ? source : {}
  const format = imageFormats.get(mediaType ?? '')
  if (type === 'base64' && format !== undefined && typeof data === 'string')
    return { image: { format, source: { bytes: data } } }
  refusals.add(
    `${path}.source`,
    'must be a base64 image (jpeg, png, gif, webp): the Converse API fetches no URLs',
  )
  return undefined
}

/** Audio of another API: messages have none. */
function toAudio({ source }: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const { media_type: mediaType, data } = isJsonObject(source) ? source : {}
  if (typeof mediaType === 'string' && mediaType.startsWith('audio/') && typeof data === 'string')
    return { audio: { format: mediaType.slice('audio/'.length), source: { bytes: data } } }
  refusals.add(`${path}.source`, 'must be base64 audio')
  return undefined
}

const documentFormats: ReadonlyMap<JsonValue, string> = new Map([
  ['application/pdf', 'pdf'],
  ['text/plain', 'txt'],
  ['text/csv', 'csv'],
  ['text/html', 'html'],
  ['text/markdown', 'md'],
  ['application/msword', 'doc'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.ms-excel', 'xls'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
])

function toDocument(
  { source, title, context, citations }: JsonObject,
  path: string,
  names: DocumentNames,
  refusals: Refusals,
): JsonObject | undefined {
  const { type, media_type: mediaType, data, content } = isJsonObject(source) ? source : {}
  const more = {
    ...(isAbsent(context) ? undefined : { context }),
    ...citationsOf(citations),
  }
  if (type === 'content') {
    const blocks =
      typeof content === 'string' ? [{ text: content }] : toTexts(content, `${path}.source`, refusals)
    return {
      document: { format: 'txt', name: documentName(title, names), source: { content: blocks }, ...more },
    }
  }
  const format = documentFormats.get(mediaType ?? 'text/plain')
  if ((type !== 'base64' && type !== 'text') || format === undefined || typeof data !== 'string') {
    refusals.add(`${path}.source`, 'must be a base64 document or a text: the Converse API fetches no URLs')
    return undefined
  }
  return {
    document: {
      format,
      name: documentName(title, names),
      source: type === 'text' ? { text: data } : { bytes: data },
      ...more,
    },
  }
}

function citationsOf(citations: JsonValue | undefined): JsonObject | undefined {
  const isEnabled = isJsonObject(citations) && citations.enabled === true
  return isEnabled ? { citations: { enabled: true } } : undefined
}

/** Texts of documents and search results, which have no other content. */
function toTexts(content: JsonValue | undefined, path: string, refusals: Refusals): JsonObject[] {
  const blocks = toBlocks(content, `${path}.content`, { used: new Set() }, refusals, toTextBlock)
  return blocks.filter(({ text }) => text !== undefined)
}

function toSearchResult(
  { source, title, content, citations }: JsonObject,
  path: string,
  refusals: Refusals,
): JsonObject {
  if (typeof source !== 'string') refusals.add(`${path}.source`, 'must be a string')
  if (typeof title !== 'string') refusals.add(`${path}.title`, 'must be a string')
  const texts = toTexts(content, path, refusals)
  return {
    searchResult: { source: source ?? '', title: title ?? '', content: texts, ...citationsOf(citations) },
  }
}

/** Names consist of letters, digits, single spaces, hyphens, parentheses and brackets. */
function documentName(title: JsonValue | undefined, { used }: DocumentNames): string {
  const plain = (typeof title === 'string' ? title : '')
    .replaceAll(/[^A-Za-z0-9\s\-()[\]]/g, '-')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, 180)
  const wanted = plain === '' ? 'document' : plain
  const name = used.has(wanted) ? `${wanted} (${used.size + 1})` : wanted
  used.add(name)
  return name
}

function toToolUse({ id, name, input }: JsonObject, path: string, refusals: Refusals): JsonObject {
  if (typeof id !== 'string') refusals.add(`${path}.id`, 'must be a string')
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  if (!isJsonObject(input)) refusals.add(`${path}.input`, 'must be an object')
  return { toolUse: { toolUseId: id ?? '', name: name ?? '', input: input ?? {} } }
}

function toToolResult(
  { tool_use_id: id, content, is_error: isError }: JsonObject,
  path: string,
  names: DocumentNames,
  refusals: Refusals,
): JsonObject {
  if (typeof id !== 'string') refusals.add(`${path}.tool_use_id`, 'must be a string')
  const blocks = isAbsent(content) ? [] : toBlocks(content, `${path}.content`, names, refusals, toResultBlock)
  return {
    toolResult: {
      toolUseId: id ?? '',
      // The service refuses results without content.
      content: blocks.length === 0 ? [{ text: '(empty)' }] : blocks,
      ...(isError === true ? { status: 'error' } : undefined),
    },
  }
}

const toResultBlock: ToBlock = (block, path, names, refusals) => {
  if (block.type === 'image') return toImage(block, path, refusals)
  if (block.type === 'document') return toDocument(block, path, names, refusals)
  if (block.type === 'search_result') return toSearchResult(block, path, refusals)
  return toTextBlock(block, path, names, refusals)
}
