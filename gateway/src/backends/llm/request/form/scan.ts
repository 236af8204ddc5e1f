import { isUtf8 } from 'node:buffer'

/** A part of a form: a text, or a file. `content` refers to the bytes of the body. */
export type FormPart = {
  readonly name: string
  /** Undefined for a text. */
  readonly filename: string | undefined
  readonly contentType: string | undefined
  readonly content: Buffer
}

export type ScannedForm =
  | { readonly kind: 'parts'; readonly parts: readonly FormPart[] }
  | { readonly kind: 'invalid'; readonly message: string }

/** The start of a form up to the content of its last part, a file. */
export type FormStart = {
  readonly texts: readonly FormPart[]
  readonly file: PartHead
  /** Position of the content. */
  readonly contentAt: number
}

const maxParts = 64
const maxHeaderBytes = 4096

/**
 * Splits a form into its parts (RFC 7578), without copies of their content. Everything that parsers read in
 * different ways is invalid: text around the parts, bare line feeds, folded or unknown headers, encoded
 * names.
 */
export function scanForm(body: Buffer, boundary: string): ScannedForm {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  if (!startsWithBoundary(body, delimiter)) return invalid('must begin with its boundary')
  const parts: FormPart[] = []
  let at = delimiter.length - lineEnd.length
  while (!isClosing(body, at)) {
    if (parts.length === maxParts) return invalid(`must have at most ${maxParts} parts`)
    const found = partAt(body, at, delimiter)
    if (found.kind === 'invalid') return invalid(found.problem)
    if (found.kind === 'open') return invalid('must end with its boundary')
    if (typeof found.head === 'string') return invalid(`part ${parts.length + 1} ${found.head}`)
    parts.push({ ...found.head, content: found.content })
    at = found.end
  }
  return parts.length === 0 ? invalid('must have parts') : { kind: 'parts', parts }
}

/**
 * Reads the start of a form. Undefined unless it has texts only, and then the beginning of a file; and for
 * everything that `scanForm` refuses.
 */
export function scanFormStart(start: Buffer, boundary: string): FormStart | undefined {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  if (!startsWithBoundary(start, delimiter)) return undefined
  const texts: FormPart[] = []
  let at = delimiter.length - lineEnd.length
  while (texts.length < maxParts) {
    const found = partAt(start, at, delimiter)
    if (found.kind === 'invalid' || typeof found.head === 'string') return undefined
    const isFile = found.head.filename !== undefined
    if (found.kind === 'open') return isFile ? { texts, file: found.head, contentAt: found.at } : undefined
    if (isFile) return undefined
    texts.push({ ...found.head, content: found.content })
    at = found.end
  }
  return undefined
}

/** A part behind a boundary; `open` without an end, and `head` is a problem of its headers. */
type FoundPart =
  | {
      readonly kind: 'part'
      readonly head: PartHead | string
      readonly content: Buffer
      readonly end: number
    }
  | { readonly kind: 'open'; readonly head: PartHead | string; readonly at: number }
  | { readonly kind: 'invalid'; readonly problem: string }

function partAt(body: Buffer, boundaryEnd: number, delimiter: Buffer): FoundPart {
  if (!startsWith(body, lineEnd, boundaryEnd))
    return { kind: 'invalid', problem: 'must have a line end after each boundary' }
  const start = boundaryEnd + lineEnd.length
  const lines = body.subarray(start, start + maxHeaderBytes)
  const length = lines.indexOf(headEnd)
  if (length === -1)
    return { kind: 'invalid', problem: `must have headers of at most ${maxHeaderBytes} bytes in each part` }
  const at = start + length + headEnd.length
  const head = readHead(lines.subarray(0, length))
  const end = body.indexOf(delimiter, at)
  if (end === -1) return { kind: 'open', head, at }
  return { kind: 'part', head, content: body.subarray(at, end), end: end + delimiter.length }
}

function startsWithBoundary(body: Buffer, delimiter: Buffer): boolean {
  return startsWith(body, delimiter.subarray(lineEnd.length), 0)
}

function invalid(problem: string): ScannedForm {
  return { kind: 'invalid', message: `multipart body ${problem}` }
}

const lineEnd = Buffer.from('\r\n')
const headEnd = Buffer.from('\r\n\r\n')
const closing = Buffer.from('--')

function startsWith(body: Buffer, text: Buffer, at: number): boolean {
  return at + text.length <= body.length && body.compare(text, 0, text.length, at, at + text.length) === 0
}

/** The closing boundary ends the body, with an optional line end. */
function isClosing(body: Buffer, at: number): boolean {
  if (!startsWith(body, closing, at)) return false
  const rest = at + closing.length
  return rest === body.length || (rest + lineEnd.length === body.length && startsWith(body, lineEnd, rest))
}

/** Name, filename and media type of a part. */
export type PartHead = Omit<FormPart, 'content'>

/** Reads the headers of a part, or returns a problem. */
function readHead(bytes: Buffer): PartHead | string {
  if (!isUtf8(bytes)) return 'has headers that are not UTF-8'
  const headers = new Map<string, string>()
  for (const line of bytes.toString().split('\r\n')) {
    const [, name, value] = headerSyntax.exec(line) ?? []
    if (name === undefined || value === undefined) return 'has an invalid header'
    const key = name.toLowerCase()
    if (!knownHeaders.has(key)) return `has the header ${key.slice(0, 40)}, which is not supported`
    if (headers.has(key)) return `has the header ${key} twice`
    headers.set(key, value.trim())
  }
  if (!/^(?:binary|8bit|7bit|)$/i.test(headers.get('content-transfer-encoding') ?? ''))
    return 'has a content-transfer-encoding'
  const disposition = headers.get('content-disposition')
  const contentType = headers.get('content-type')
  if (contentType !== undefined && contentType.length > maxTypeLength) return 'has a too long content-type'
  const [, quoted, token, filename] = dispositionSyntax.exec(disposition ?? '') ?? []
  const name = quoted ?? token
  if (name === undefined) return 'must have content-disposition: form-data; name="..."; filename="..."'
  return { name, filename, contentType }
}

const maxTypeLength = 128
const knownHeaders: ReadonlySet<string> = new Set([
  'content-disposition',
  'content-type',
  'content-length',
  'content-transfer-encoding',
])

const headerSyntax = /^([A-Za-z-]+):([^\u0000-\u001f\u007f]*)$/

/** Names of fields of the APIs. Values with quotes or backslashes are escaped in several ways. */
const dispositionSyntax =
  /^form-data; ?name=(?:"([\w.-]{1,64}(?:\[\w{0,32}\])?)"|([\w.-]{1,64}))(?:; ?filename="([^"\\]{0,255})")?$/i
