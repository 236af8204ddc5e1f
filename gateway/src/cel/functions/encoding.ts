import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { isMap, mapEntries, noOverload } from '../closures/values.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import { bytesFunction, type CelFunction, textFunction, unaryFunction } from './function.ts'

/** Base64, percent-encoding, forms and digests. */
export const encodingFunctions: readonly CelFunction[] = [
  ...['base64.encode', 'base64Encode'].map((name) =>
    bytesFunction(name, (bytes) => {
      spendWork(bytes.byteLength * 2)
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
    }),
  ),
  ...['base64.decode', 'base64Decode'].map((name) =>
    textFunction(
      name,
      (text) => base64Bytes(text, 'base64') ?? new Failure(`${name}() of text that is not base64`),
    ),
  ),
  bytesFunction('url.encode', percentEncode),
  textFunction('url.decode', percentDecode),
  textFunction('form.decode', readForm),
  unaryFunction('form.encode', writeForm),
  ...['sha1', 'sha256', 'md5'].map((algorithm) =>
    bytesFunction(`${algorithm}.encode`, (bytes) => {
      spendWork(bytes.byteLength * costOfDigest)
      return hash(algorithm, bytes, 'hex')
    }),
  ),
]

/** Work units of a digest per byte. */
const costOfDigest = 5

/** Decodes base64 with or without padding; undefined for other characters and stray bits. */
export function base64Bytes(text: string, alphabet: 'base64' | 'base64url'): Buffer | undefined {
  spendWork(text.length * 6)
  const valid = alphabet === 'base64' ? /^[A-Za-z0-9+/]*={0,2}$/ : /^[A-Za-z0-9_-]*={0,2}$/
  if (!valid.test(text)) return undefined
  const digits = text.replace(/=+$/, '')
  if (digits.length < text.length && text.length % 4 !== 0) return undefined
  const bytes = Buffer.from(digits, alphabet)
  return bytes.toString(alphabet).replace(/=+$/, '') === digits ? bytes : undefined
}

const percent = 0x25
const hexDigits = '0123456789ABCDEF'

/** Escapes all bytes but unreserved characters (RFC 3986 section 2.3). */
function percentEncode(bytes: Uint8Array): string {
  spendWork(bytes.byteLength * 30)
  const encoded = Buffer.allocUnsafe(bytes.byteLength * 3)
  let end = 0
  for (const byte of bytes) {
    if (isUnreserved(byte)) encoded[end++] = byte
    else {
      encoded[end++] = percent
      encoded[end++] = hexDigits.charCodeAt(byte >> 4)
      encoded[end++] = hexDigits.charCodeAt(byte & 15)
    }
  }
  return encoded.toString('latin1', 0, end)
}

function isUnreserved(byte: number): boolean {
  if (byte >= 0x61 && byte <= 0x7a) return true
  if (byte >= 0x41 && byte <= 0x5a) return true
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2e || byte === 0x5f || byte === 0x7e
}

/** Decodes escapes. An incomplete escape is text; bytes that are not UTF-8 are a failure. */
function percentDecode(text: string): unknown {
  spendWork(text.length * 20)
  if (!text.includes('%')) return text
  const bytes = Buffer.from(text)
  let end = 0
  for (let index = 0; index < bytes.length; index += 1) {
    const code = bytes[index] === percent ? escapeAt(bytes, index) : undefined
    bytes[end] = code ?? bytes[index] ?? 0
    end += 1
    if (code !== undefined) index += 2
  }
  const decoded = bytes.subarray(0, end)
  return isUtf8(decoded) ? decoded.toString() : new Failure('url.decode() of bytes that are not UTF-8')
}

function escapeAt(bytes: Buffer, index: number): number | undefined {
  const high = hexValue(bytes[index + 1])
  const low = hexValue(bytes[index + 2])
  return high === undefined || low === undefined ? undefined : high * 16 + low
}

function hexValue(code: number = 0): number | undefined {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : undefined
}

/** Work units of a form per character: a pair may have one. */
const costOfForm = 400

/** Parses `application/x-www-form-urlencoded`; repeated keys become lists. */
function readForm(text: string): unknown {
  spendWork(text.length * costOfForm)
  const fields = new Map<string, string | string[]>()
  for (const [key, value] of new URLSearchParams(text.startsWith('?') ? `&${text}` : text)) {
    const known = fields.get(key)
    if (known === undefined) fields.set(key, value)
    else if (typeof known === 'string') fields.set(key, [known, value])
    else known.push(value)
  }
  return fields
}

/** Writes `application/x-www-form-urlencoded` in the order of keys; null values are omitted. */
function writeForm(map: unknown): unknown {
  if (!isMap(map)) return noOverload('form.encode', map)
  const form = new URLSearchParams()
  const fields = mapEntries(map).map(([key, value]): [string, unknown] => [String(key), value])
  fields.sort(([one], [other]) => (one < other ? -1 : 1))
  for (const [key, value] of fields) {
    if (value === null) continue
    for (const item of Array.isArray(value) ? value : [value]) {
      if (typeof item !== 'string') return new Failure('form.encode() requires strings or lists of strings')
      spendWork(400 + (key.length + item.length) * 20)
      form.append(key, item)
    }
  }
  return form.toString()
}
