import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { sourceUrl } from '../image-source.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import type { FormRefusals } from './chat-form.ts'

/** Calls `visit` for each block of a content list. */
export function eachBlock(
  content: JsonValue | undefined,
  path: string,
  refusals: Refusals,
  visit: (block: JsonObject, path: string) => void,
): void {
  if (!Array.isArray(content)) {
    refusals.add(path, 'must be a string or a list of blocks')
    return
  }
  for (const [index, block] of content.entries()) {
    if (isJsonObject(block)) visit(block, `${path}[${index}]`)
    else refusals.add(`${path}[${index}]`, 'must be an object')
  }
}

/** Joins the texts of content that may contain only text. */
export function joinedText(
  content: JsonValue | undefined,
  path: string,
  refusals: Refusals,
  separator: string,
): string {
  if (typeof content === 'string') return content
  const texts: JsonValue[] = []
  eachBlock(content, path, refusals, (block, blockPath) => {
    if (block.type !== 'text') refusals.add(`${blockPath}.type`, 'must be text')
    const part = toText(block, blockPath, refusals)
    if (part !== undefined) texts.push(part.text ?? '')
  })
  return texts.join(separator)
}

/** Translates a block of a user's turn or a tool result to a part of a chat message. */
export function toPart(block: JsonObject, path: string, refusals: FormRefusals): JsonObject | undefined {
  if (block.type === 'text') return toText(block, path, refusals)
  if (block.type === 'image') return toImage(block, path, refusals)
  if (block.type === 'document') return toFile(block, path, refusals)
  if (block.type === 'audio') return toAudio(block, path, refusals)
  refusals.add(`${path}.type`, `blocks of type "${block.type}" cannot be translated for chat completions`)
  return undefined
}

/** Cache marks and citations of a text do not change its content. */
const textFields: ReadonlySet<string> = new Set(['type', 'text', 'cache_control', 'citations'])
const imageFields: ReadonlySet<string> = new Set(['type', 'source', 'cache_control'])
const documentFields: ReadonlySet<string> = new Set([
  'type',
  'source',
  'title',
  'context',
  'citations',
  'cache_control',
])

function toText(block: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  refusals.addUnknown(block, textFields, path)
  if (typeof block.text === 'string') return { type: 'text', text: block.text }
  refusals.add(`${path}.text`, 'must be a string')
  return undefined
}

function toImage(block: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  refusals.addUnknown(block, imageFields, path)
  const url = sourceUrl(block.source)
  if (url !== undefined) return { type: 'image_url', image_url: { url } }
  refusals.add(`${path}.source`, 'must be of type base64 or url for chat completions')
  return undefined
}

/** Audio of another API: messages have none. */
function toAudio({ source }: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const { media_type: mediaType, data } = isJsonObject(source) ? source : {}
  if (typeof mediaType === 'string' && mediaType.startsWith('audio/') && typeof data === 'string')
    return { type: 'input_audio', input_audio: { data, format: mediaType.slice('audio/'.length) } }
  refusals.add(`${path}.source`, 'must be base64 audio')
  return undefined
}

function toFile(block: JsonObject, path: string, refusals: FormRefusals): JsonObject | undefined {
  refusals.addUnknown(block, documentFields, path)
  const { source, title, context, citations } = block
  if (isJsonObject(citations) && citations.enabled === true) {
    refusals.add(`${path}.citations`, 'chat completions cannot cite documents')
  }
  if (!isAbsent(context)) refusals.add(`${path}.context`, 'cannot be translated for chat completions')
  if (isJsonObject(source) && source.type === 'text' && typeof source.data === 'string') {
    return { type: 'text', text: typeof title === 'string' ? `${title}\n\n${source.data}` : source.data }
  }
  if (refusals.form.linkedDocuments && isJsonObject(source) && source.type === 'url')
    return { type: 'file', file: { file_url: source.url ?? '' } }
  const url = isJsonObject(source) && source.type === 'base64' ? sourceUrl(source) : undefined
  if (url !== undefined) {
    return {
      type: 'file',
      file: { filename: typeof title === 'string' ? title : 'document.pdf', file_data: url },
    }
  }
  refusals.add(`${path}.source`, 'must be of type base64 or text for chat completions')
  return undefined
}
