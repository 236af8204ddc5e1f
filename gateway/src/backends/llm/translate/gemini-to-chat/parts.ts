import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import type { ChatDialect } from './dialect.ts'
import { objectAt } from './fields.ts'

export type PartOptions = { readonly dialect: ChatDialect; readonly refusals: Refusals }

/** Resolutions concern only cost and accuracy, metadata only the client. */
const ignoredFields = ['thought', 'thoughtSignature', 'mediaResolution', 'partMetadata'] as const
const userFields: ReadonlySet<string> = new Set(['text', 'inlineData', 'fileData', ...ignoredFields])

/** Part of a chat message for a part of a user's content; undefined for an empty text. */
export function toChatPart(part: JsonObject, path: string, options: PartOptions): JsonObject | undefined {
  const { refusals } = options
  refusals.addUnknown(part, userFields, path)
  const { text, inlineData, fileData } = part
  if (!isAbsent(inlineData)) return toInline(inlineData, `${path}.inlineData`, options)
  if (!isAbsent(fileData)) return toLinked(fileData, `${path}.fileData`, options)
  if (typeof text === 'string') return text === '' ? undefined : { type: 'text', text }
  if (Object.keys(part).length === 0) refusals.add(path, 'must have a text, inlineData or fileData')
  return undefined
}

const blobFields: ReadonlySet<string> = new Set(['mimeType', 'data', 'displayName'])

/** Bytes of a part in base64: an image, audio, a video, a PDF or a text. */
export function toInline(
  value: JsonValue,
  path: string,
  { dialect, refusals }: PartOptions,
): JsonObject | undefined {
  const blob = objectAt(value, path, refusals)
  refusals.addUnknown(blob, blobFields, path)
  const { mimeType, data, displayName } = blob
  if (typeof mimeType !== 'string' || typeof data !== 'string') {
    refusals.add(path, 'must have mimeType and data')
    return undefined
  }
  const type = mimeType.toLowerCase().split(';')[0]?.trim() ?? ''
  const kind = type.slice(0, type.indexOf('/'))
  // Google reads base64url, too.
  const base64 = data.replaceAll('-', '+').replaceAll('_', '/')
  const url = `data:${type};base64,${base64}`
  if (kind === 'image') return { type: 'image_url', image_url: { url } }
  if (kind === 'text') return { type: 'text', text: Buffer.from(base64, 'base64').toString() }
  if (type === 'application/pdf') {
    const filename = typeof displayName === 'string' ? displayName : 'document.pdf'
    return { type: 'file', file: { filename, file_data: url } }
  }
  if (kind === 'audio' && dialect.media !== 'none')
    return { type: 'input_audio', input_audio: { data: base64, format: audioFormat(type) } }
  if (kind === 'video' && dialect.media === 'audio and video')
    return { type: 'video_url', video_url: { url } }
  refusals.add(`${path}.mimeType`, `data of type "${mimeType}" cannot be translated for ${dialect.upstream}`)
  return undefined
}

const audioFormats: ReadonlyMap<string, string> = new Map([
  ['audio/mpeg', 'mp3'],
  ['audio/x-wav', 'wav'],
  ['audio/wave', 'wav'],
])

function audioFormat(type: string): string {
  return audioFormats.get(type) ?? type.slice('audio/'.length)
}

const fileFields: ReadonlySet<string> = new Set(['mimeType', 'fileUri', 'displayName'])

/** Chat has addresses of images only; files at Google are inaccessible to other providers. */
function toLinked(
  value: JsonValue,
  path: string,
  { dialect, refusals }: PartOptions,
): JsonObject | undefined {
  const file = objectAt(value, path, refusals)
  refusals.addUnknown(file, fileFields, path)
  const { fileUri, mimeType } = file
  const url = typeof fileUri === 'string' ? fileUri : ''
  const isImage =
    typeof mimeType === 'string'
      ? mimeType.startsWith('image/')
      : /\.(?:png|jpe?g|webp|gif)(?:[?#]|$)/i.test(url)
  if (!/^https?:\/\//i.test(url) || isAtGoogle(url))
    refusals.add(
      `${path}.fileUri`,
      'must be an http(s) URL of an image: files at Google exist there only, send inlineData',
    )
  else if (!isImage)
    refusals.add(`${path}.mimeType`, `only images have addresses in ${dialect.upstream}: send inlineData`)
  return { type: 'image_url', image_url: { url } }
}

function isAtGoogle(url: string): boolean {
  return /^https?:\/\/generativelanguage\.googleapis\.com\//i.test(url)
}

/** Joins the texts of a content that may contain only text, such as a system instruction. */
export function textOf(parts: readonly [JsonObject, string][], refusals: Refusals): string {
  const texts: string[] = []
  for (const [part, path] of parts) {
    refusals.addUnknown(part, textFields, path)
    if (typeof part.text === 'string') texts.push(part.text)
    else refusals.add(`${path}.text`, 'must be a string')
  }
  return texts.join('\n\n')
}

const textFields: ReadonlySet<string> = new Set(['text', ...ignoredFields])

/** A single text as a string, which all servers accept. */
export function contentOf(parts: readonly JsonObject[]): JsonValue {
  const [only] = parts
  return parts.length === 1 && isJsonObject(only) && only.type === 'text' ? (only.text ?? '') : [...parts]
}
