import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import type { JsonText } from '../../../../lib/json/text.ts'
import { type FormPart, type PartHead, scanForm } from './scan.ts'

/**
 * A form as a JSON object of its texts, which rules, guards and changes of the configuration read and write
 * as any other body, and its files.
 */
export type Form = {
  readonly fields: JsonText
  readonly files: readonly FormPart[]
}

export type FormResult =
  | { readonly kind: 'form'; readonly form: Form }
  | { readonly kind: 'invalid'; readonly message: string }

/** All texts of a form. Larger ones would block the event loop. */
const maxTextBytes = 256 * 1024

/** Fields that decide about the call, which must be a single text. */
const reserved: ReadonlySet<string> = new Set([
  ...['model', 'models', 'fallbacks', 'prompt', 'stream', 'response_format'],
])

/** Names with a meaning for parsers. */
const unsupported: ReadonlySet<string> = new Set(['_charset_', '__proto__'])

/** Reads a form. Names are unique, except those that end with `[]`. */
export function readForm(body: Buffer, boundary: string): FormResult {
  const scanned = scanForm(body, boundary)
  return scanned.kind === 'invalid' ? scanned : formOf(scanned.parts)
}

/** Reads the parts of a form. */
export function formOf(parts: readonly FormPart[]): FormResult {
  const fields = new Map<string, JsonValue[]>()
  const files: FormPart[] = []
  const names = new Set<string>()
  let textBytes = 0
  for (const part of parts) {
    const { name, filename, content } = part
    const [base = ''] = name.split('[')
    const isList = name.endsWith('[]')
    if (unsupported.has(name) || (reserved.has(base) && (base !== name || filename !== undefined)))
      return invalid(`part "${name}" is not supported`)
    if (names.has(name) && !isList) return invalid(`duplicate part "${name}"`)
    names.add(name)
    if (filename !== undefined) {
      files.push(part)
      continue
    }
    const problem = textProblem(part)
    if (problem !== undefined) return invalid(`part "${name}" ${problem}`)
    textBytes += content.byteLength
    if (textBytes > maxTextBytes) return invalid(`texts are larger than ${maxTextBytes} bytes`)
    fields.set(name, [...(fields.get(name) ?? []), content.toString()])
  }
  if (files.some(({ name }) => fields.has(name))) return invalid('a part is both a text and a file')
  return { kind: 'form', form: { fields: jsonOf(fields), files } }
}

function invalid(message: string): FormResult {
  return { kind: 'invalid', message: `multipart body: ${message}` }
}

function textProblem({ content, contentType = 'text/plain' }: FormPart): string | undefined {
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const isText = /^(?:text\/plain|application\/json)$/.test(type.trim())
  if (!isText || !parameters.every((parameter) => /^\s*charset="?utf-?8"?\s*$/.test(parameter)))
    return 'must be text in UTF-8 or a file with a filename'
  return isUtf8(content) ? undefined : 'is not UTF-8'
}

function jsonOf(fields: ReadonlyMap<string, JsonValue[]>): JsonText {
  const value: JsonObject = {}
  for (const [name, values] of fields) {
    const [only = null] = values
    value[name] = name.endsWith('[]') ? values : name === 'stream' ? streamOf(only) : only
  }
  return { kind: 'object', text: JSON.stringify(value), value, hasLargeNumbers: false }
}

/** Texts other than `true` and `false` are refused later: servers differ in their meaning. */
function streamOf(value: JsonValue): JsonValue {
  return value === 'true' ? true : value === 'false' ? false : value
}

/**
 * Writes a form with changed fields. The boundary is a new one, so that no client can place it in a file, and
 * headers are written in one form, so that all servers read the same parts.
 */
export function writeForm(
  fields: JsonObject,
  files: readonly FormPart[],
): { contentType: string; body: Buffer } {
  const boundary = createBoundary()
  const pieces = textPieces(boundary, fields)
  for (const { content, ...file } of files) pieces.push(headOf(boundary, file), content, lineEnd)
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: contentTypeOf(boundary), body: Buffer.concat(pieces) }
}

/** The bytes around the content of the only file of a form. */
export type FormFrame = {
  readonly start: Buffer
  /** Without the two hyphens that end a form. */
  readonly delimiter: Buffer
}

/** Writes a form whose file is streamed. */
export function writeFrame(fields: JsonObject, file: PartHead): FormFrame & { readonly contentType: string } {
  const boundary = createBoundary()
  const start = Buffer.concat([...textPieces(boundary, fields), headOf(boundary, file)])
  return { contentType: contentTypeOf(boundary), start, delimiter: Buffer.from(`\r\n--${boundary}`) }
}

function createBoundary(): string {
  return `tollgate-${randomBytes(16).toString('hex')}`
}

function contentTypeOf(boundary: string): string {
  return `multipart/form-data; boundary=${boundary}`
}

function textPieces(boundary: string, fields: JsonObject): Buffer[] {
  const pieces: Buffer[] = []
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined) continue
    const texts = Array.isArray(value) ? value : [value]
    // Names of the configuration may have any characters.
    const written = name.replace(/["\\\r\n]/g, encodeURIComponent)
    for (const text of texts)
      pieces.push(partStart(boundary, `name="${written}"`), Buffer.from(textOf(text)), lineEnd)
  }
  return pieces
}

function headOf(boundary: string, { name, filename = '', contentType }: PartHead): Buffer {
  const type = contentType === undefined ? '' : `\r\ncontent-type: ${contentType}`
  return partStart(boundary, `name="${name}"; filename="${filename}"${type}`)
}

function partStart(boundary: string, head: string): Buffer {
  return Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`)
}

const lineEnd = Buffer.from('\r\n')

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
