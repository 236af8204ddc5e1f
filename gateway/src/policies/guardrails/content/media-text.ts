import { isUtf8 } from 'node:buffer'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { JsonPath } from '../../../lib/json/splice.ts'
import { CheckFailure } from '../guard.ts'
import type { TextPart } from './content-reader.ts'

/** Members of parts with media: as text in base64, as `data:` URL, or in an object with one of them. */
const mediaMembers = [
  'image_url',
  'video_url',
  'audio_url',
  'document_url',
  'file_url',
  'file_data',
  'file',
  'source',
  'inlineData',
  'inline_data',
  'inlineImage',
] as const

/** Returns the names and texts of a part that are sent as files, since models read them as texts. */
export function mediaTexts(part: JsonObject, path: JsonPath): TextPart[] {
  const found = mediaMembers.flatMap((name) => {
    const value = part[name]
    if (typeof value === 'string') return fileText(value, typeOf(part), [...path, name])
    return isJsonObject(value) ? textsOfMedia(value, [...path, name]) : []
  })
  return [...fileNames(part, path), ...found]
}

function fileNames(media: JsonObject, path: JsonPath): TextPart[] {
  return ['filename', 'displayName', 'display_name'].flatMap((name) => {
    const text = media[name]
    return typeof text === 'string' && text !== '' ? [{ text, path: [...path, name] }] : []
  })
}

/** Members with content in an object of media. */
const contentMembers = ['url', 'file_data', 'data', 'bytes'] as const

function textsOfMedia(media: JsonObject, path: JsonPath): TextPart[] {
  const type = typeOf(media)
  // The data of other sources are plain text.
  const names = media['type'] === 'text' ? contentMembers.filter((name) => name !== 'data') : contentMembers
  const found = names.flatMap((name) => {
    const value = media[name]
    return typeof value === 'string' ? fileText(value, type, [...path, name]) : []
  })
  return [...fileNames(media, path), ...found]
}

/** Media type, or extension of the file name. */
function typeOf(media: JsonObject): string {
  const { media_type: type = media['mimeType'] ?? media['mime_type'], filename } = media
  if (typeof type === 'string') return type
  return typeof filename === 'string' ? (/\.([^.]*)$/.exec(filename)?.[1] ?? '') : ''
}

/**
 * Returns the text of a file, given as base64 or `data:` URL with a media type or format; nothing for binary
 * files and addresses. Throws `CheckFailure` for a file of text that is not UTF-8, because a model may read
 * it in another encoding.
 */
export function fileText(value: string, type: string, path: JsonPath): TextPart[] {
  const head = value.slice(0, maxHead)
  if (!/^\s*data:/i.test(head)) return isAddress(head) ? [] : base64Text(value, { type, path, prefix: '' })
  const [prefix, parameters = ''] = /^\s*data:([^,]*),/i.exec(head) ?? []
  if (prefix === undefined) throw new CheckFailure('an unreadable data: URL')
  const [declared = ''] = parameters.split(';')
  const content = value.slice(prefix.length)
  if (/;\s*base64\s*$/i.test(parameters))
    return base64Text(content, { type: isTextType(type) ? type : declared, path, prefix })
  const base64 = { prefix: `data:${parameters};base64,` }
  return content === '' ? [] : [{ text: percentDecoded(content), path, base64 }]
}

const maxHead = 1024

function isAddress(head: string): boolean {
  return /^\s*[a-z][a-z\d+.-]*:/i.test(head)
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new CheckFailure('a data: URL that is not UTF-8')
  }
}

type Base64Options = { type: string; path: JsonPath; prefix: string }

/** As `fileText`, for base64 behind a prefix. */
export function base64Text(value: string, { type, path, prefix }: Base64Options): TextPart[] {
  const end = value.indexOf('=')
  // Decoders differ in text behind the padding.
  if (end !== -1 && !/^[=\s]*$/.test(value.slice(end)))
    throw new CheckFailure('base64 with text behind its end')
  const text = decodedText(value)
  if (text === '') return []
  if (text !== undefined) return [{ text, path, base64: { prefix } }]
  if (isTextType(type)) throw new CheckFailure('a document that is not text in UTF-8')
  return []
}

/** The text in base64; undefined for binary content. */
function decodedText(base64: string): string | undefined {
  const head = Buffer.from(base64.slice(0, headLength), 'base64')
  if (head.some(isControl)) return undefined
  const bytes = Buffer.from(base64, 'base64')
  return isUtf8(bytes) && !bytes.some(isControl) ? bytes.toString() : undefined
}

/** A multiple of four. Files of media have control characters in their first bytes. */
const headLength = 1024

/** Control characters except for white space and escape. */
function isControl(byte: number): boolean {
  return byte < 0x20 && (byte < 0x09 || byte > 0x0d) && byte !== 0x1b
}

/** Whether a media type, or the format or extension of a file, is that of texts. */
function isTextType(type: string): boolean {
  const [plain = ''] = type.trim().toLowerCase().split(/\s*;/)
  return plain.includes('/') ? !binaryType.test(plain) : textFormat.test(plain)
}

const binaryType =
  /^(?:(?:image|audio|video|font|model)\/|application\/(?:octet-stream|pdf|zip|gzip|ogg|epub|msword|vnd\.|x-zip))(?!.*(?:\+xml|\+json)$)/
const textFormat =
  /^(?:txt|text|md|markdown|html?|css|csv|tsv|jsonl?|xml|svg|ya?ml|toml|ini|log|rst|tex|rtf|c|cc|cpp|cs|go|h|java|js|kt|php|pl|py|rb|rs|sh|sql|swift|ts|eml|ics|srt|vtt)$/
