import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { imageSource, parseDataUrl } from '../image-source.ts'
import { isAbsent, type Refusals } from '../refusals.ts'

/** Content of a user message: a string is unchanged, parts become blocks. */
export function toContent(content: JsonValue | undefined, path: string, refusals: Refusals): JsonValue {
  if (typeof content === 'string') return content
  return toBlocks(content, path, refusals, toBlock)
}

/** Blocks of content that may contain only text and, in an assistant's turn, refusals. */
export function textBlocks(content: JsonValue | undefined, path: string, refusals: Refusals): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return toBlocks(content, path, refusals, toTextBlock)
}

type ToBlock = (part: JsonObject, path: string, refusals: Refusals) => JsonObject | undefined

function toBlocks(
  content: JsonValue | undefined,
  path: string,
  refusals: Refusals,
  toOne: ToBlock,
): JsonObject[] {
  if (!Array.isArray(content)) {
    refusals.add(path, 'must be a string or a list of parts')
    return []
  }
  const blocks: JsonObject[] = []
  for (const [index, part] of content.entries()) {
    if (!isJsonObject(part)) {
      refusals.add(`${path}[${index}]`, 'must be an object')
      continue
    }
    const block = toOne(part, `${path}[${index}]`, refusals)
    if (block === undefined) continue
    // Not a field of chat, but clients use it to set cache points of the messages API.
    if (isJsonObject(part.cache_control)) block.cache_control = part.cache_control
    blocks.push(block)
  }
  return blocks
}

function toBlock(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  if (part.type === 'image_url') return toImage(part, path, refusals)
  if (part.type === 'input_audio' && refusals.audio) return toAudio(part, path, refusals)
  if (part.type === 'file') return toDocument(part, path, refusals)
  return toTextBlock(part, path, refusals)
}

const markFields = ['type', 'cache_control', 'prompt_cache_breakpoint']
const textFields: ReadonlySet<string> = new Set(['text', ...markFields])
const refusalFields: ReadonlySet<string> = new Set(['refusal', ...markFields])
const imageFields: ReadonlySet<string> = new Set(['image_url', ...markFields])
const audioFields: ReadonlySet<string> = new Set(['input_audio', ...markFields])
const fileFields: ReadonlySet<string> = new Set(['file', ...markFields])

/** Empty text is removed, because the messages API rejects it. */
function toTextBlock(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const name = part.type === 'refusal' ? 'refusal' : 'text'
  if (part.type !== name) {
    refusals.add(
      `${path}.type`,
      `parts of type "${part.type}" cannot be translated for the messages API here`,
    )
    return undefined
  }
  refusals.addUnknown(part, name === 'text' ? textFields : refusalFields, path)
  const text = part[name]
  if (typeof text !== 'string') refusals.add(`${path}.${name}`, 'must be a string')
  return typeof text === 'string' && text !== '' ? { type: 'text', text } : undefined
}

/** `detail` affects only cost and accuracy and is removed. */
function toImage(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  refusals.addUnknown(part, imageFields, path)
  const url = isJsonObject(part.image_url) ? part.image_url.url : undefined
  if (typeof url !== 'string') {
    refusals.add(`${path}.image_url.url`, 'must be a string')
    return undefined
  }
  const image = imageSource(url)
  if (image.kind === 'source') return { type: 'image', source: image.source }
  refusals.add(`${path}.image_url.url`, image.message)
  return undefined
}

function toAudio(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  refusals.addUnknown(part, audioFields, path)
  const { data, format } = isJsonObject(part.input_audio) ? part.input_audio : {}
  if (typeof data === 'string' && typeof format === 'string')
    return { type: 'audio', source: { type: 'base64', media_type: `audio/${format}`, data } }
  refusals.add(`${path}.input_audio`, 'must have data and format')
  return undefined
}

function toDocument(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  refusals.addUnknown(part, fileFields, path)
  const file = isJsonObject(part.file) ? part.file : {}
  if (!isAbsent(file.file_id)) {
    refusals.add(`${path}.file.file_id`, 'uploaded files exist at their own provider only')
    return undefined
  }
  const inline = typeof file.file_data === 'string' ? parseDataUrl(file.file_data) : undefined
  if (inline?.mediaType !== 'application/pdf') {
    refusals.add(`${path}.file.file_data`, 'must be a base64 data: URL of type application/pdf')
    return undefined
  }
  const source = { type: 'base64', media_type: inline.mediaType, data: inline.base64 }
  return {
    type: 'document',
    source,
    ...(typeof file.filename === 'string' ? { title: file.filename } : undefined),
  }
}
