import type { Readable } from 'node:stream'
import { parseJsonObject } from '../../../lib/json/json.ts'
import { printable } from '../../../schema/printable.ts'
import type { Acknowledgement } from './proxy-connections.ts'

type ReadAcknowledgement =
  | ({ readonly kind: 'acknowledgement' } & Acknowledgement)
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }

const maxBytes = 64 * 1024
const maxErrors = 20
const maxErrorLength = 500
const maxVersionLength = 64

/** Reads `{ serving, refused: { version, errors } }`. Errors are bounded in number and length. */
export async function readAcknowledgement(request: Readable): Promise<ReadAcknowledgement> {
  const text = await readText(request)
  if (text === undefined) return refused(413, `the acknowledgement is larger than ${maxBytes} bytes`)
  const value = parseJsonObject(text)
  if (value === undefined) return refused(400, 'the acknowledgement must be a JSON object')
  const serving = member(value, 'serving')
  if (!isVersion(serving)) return refused(400, 'serving must be a version')
  const refusedValue = member(value, 'refused')
  if (refusedValue === undefined) return { kind: 'acknowledgement', serving, refused: undefined }
  const version = member(refusedValue, 'version')
  const errors = member(refusedValue, 'errors')
  if (typeof version !== 'string' || !isVersion(version) || !isTexts(errors)) {
    return refused(400, 'refused must have a version and a list of texts as errors')
  }
  const lines = errors.slice(0, maxErrors).map((error) => printable(error.slice(0, maxErrorLength)))
  return { kind: 'acknowledgement', serving, refused: { version, errors: lines } }
}

/** Undefined if it is too large. Rejects if the connection ends. */
async function readText(request: Readable): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  // The response follows on the same stream.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!Buffer.isBuffer(chunk)) continue
    length += chunk.length
    if (length > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function isVersion(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value.length <= maxVersionLength)
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return Reflect.get(value, name)
}

function refused(status: number, message: string): ReadAcknowledgement {
  return { kind: 'refused', status, message }
}
