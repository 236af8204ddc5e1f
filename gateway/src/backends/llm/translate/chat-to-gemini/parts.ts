import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { parseDataUrl } from '../image-source.ts'
import type { Refusals } from '../refusals.ts'

/** Parts of a user message. */
export function toParts(content: JsonValue | undefined, path: string, refusals: Refusals): JsonObject[] {
  return partsOf(content, path, refusals, toPart)
}

/** Parts of content that may contain only text and, in an assistant's turn, refusals. */
export function textParts(content: JsonValue | undefined, path: string, refusals: Refusals): JsonObject[] {
  return partsOf(content, path, refusals, toTextPart)
}

/** Text of content that may contain only text. */
export function textOf(content: JsonValue | undefined, path: string, refusals: Refusals): string {
  return textParts(content, path, refusals)
    .map(({ text }) => text)
    .join('')
}

type ToPart = (part: JsonObject, path: string, refusals: Refusals) => JsonObject | undefined

function partsOf(
  content: JsonValue | undefined,
  path: string,
  refusals: Refusals,
  toOne: ToPart,
): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }]
  if (!Array.isArray(content)) {
    refusals.add(path, 'must be a string or a list of parts')
    return []
  }
  return content.flatMap((part, index): JsonObject[] => {
    const at = `${path}[${index}]`
    const translated = isJsonObject(part) ? toOne(part, at, refusals) : undefined
    if (isJsonObject(part)) return translated === undefined ? [] : [translated]
    refusals.add(at, 'must be an object')
    return []
  })
}

function toPart(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  switch (part.type) {
    case 'image_url':
      return toLinkedMedia(part, 'image_url', path, refusals)
    case 'video_url':
      return toLinkedMedia(part, 'video_url', path, refusals)
    case 'input_audio':
      return toAudio(part, path, refusals)
    case 'file':
      return toFile(part, path, refusals)
    default:
      return toTextPart(part, path, refusals)
  }
}

/** Cache marks of other APIs have no effect: Gemini caches prefixes on its own. */
const markFields = ['type', 'cache_control', 'prompt_cache_breakpoint']
const textFields: ReadonlySet<string> = new Set(['text', ...markFields])
const refusalFields: ReadonlySet<string> = new Set(['refusal', ...markFields])
const audioFields: ReadonlySet<string> = new Set(['input_audio', ...markFields])
const fileFields: ReadonlySet<string> = new Set(['file', ...markFields])

function toTextPart(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  const name = part.type === 'refusal' ? 'refusal' : 'text'
  if (part.type !== name) {
    refusals.add(`${path}.type`, `parts of type "${part.type}" cannot be translated for Gemini here`)
    return undefined
  }
  refusals.addUnknown(part, name === 'text' ? textFields : refusalFields, path)
  const text = part[name]
  if (typeof text !== 'string') refusals.add(`${path}.${name}`, 'must be a string')
  return typeof text === 'string' && text !== '' ? { text } : undefined
}

/** `detail` affects only cost and accuracy and is removed. */
function toLinkedMedia(
  part: JsonObject,
  name: 'image_url' | 'video_url',
  path: string,
  refusals: Refusals,
): JsonObject | undefined {
  refusals.addUnknown(part, new Set([name, ...markFields]), path)
  const source = part[name]
  const { url, format } = isJsonObject(source) ? source : {}
  if (typeof url === 'string') {
    const media = toMedia(url, format)
    if (media !== undefined) return media
  }
  refusals.add(`${path}.${name}.url`, 'must be an http(s) or gs URL or a base64 data: URL')
  return undefined
}

/** `mimeType` is first: Vertex AI refuses it after the data. */
function toMedia(url: string, type: JsonValue | undefined): JsonObject | undefined {
  const inline = parseDataUrl(url)
  if (inline !== undefined)
    return { inlineData: { mimeType: plainType(inline.mediaType), data: inline.base64 } }
  if (!/^(?:https?|gs):\/\//i.test(url)) return undefined
  const mimeType = typeof type === 'string' && type.includes('/') ? plainType(type) : typeByExtension(url)
  return { fileData: { ...(mimeType === undefined ? undefined : { mimeType }), fileUri: url } }
}

function plainType(type: string): string {
  return type === 'image/jpg' ? 'image/jpeg' : type
}

const types: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['gif', 'image/gif'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['pdf', 'application/pdf'],
  ['txt', 'text/plain'],
  ['mp3', 'audio/mpeg'],
  ['wav', 'audio/wav'],
  ['mp4', 'video/mp4'],
  ['mov', 'video/quicktime'],
  ['webm', 'video/webm'],
])

/** The type of files in a bucket or on a site, which Vertex AI does not determine. */
function typeByExtension(url: string): string | undefined {
  const extension = /\.([A-Za-z0-9]+)(?:[?#].*)?$/.exec(url)?.[1]
  return extension === undefined ? undefined : types.get(extension.toLowerCase())
}

function toAudio(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  refusals.addUnknown(part, audioFields, path)
  const { data, format } = isJsonObject(part.input_audio) ? part.input_audio : {}
  if (typeof data === 'string' && typeof format === 'string' && /^[a-z0-9.+-]+$/i.test(format))
    return { inlineData: { mimeType: types.get(format) ?? `audio/${format}`, data } }
  refusals.add(`${path}.input_audio`, 'must have data and format')
  return undefined
}

function toFile(part: JsonObject, path: string, refusals: Refusals): JsonObject | undefined {
  refusals.addUnknown(part, fileFields, path)
  const { file_id: id, file_data: data, format } = isJsonObject(part.file) ? part.file : {}
  if (typeof id === 'string') {
    const media = id.startsWith('data:') ? undefined : toMedia(id, format)
    if (media !== undefined) return media
    refusals.add(`${path}.file.file_id`, 'must be the URI of a file at Google')
    return undefined
  }
  if (typeof data === 'string' && parseDataUrl(data) !== undefined) return toMedia(data, undefined)
  refusals.add(`${path}.file.file_data`, 'must be a base64 data: URL')
  return undefined
}
