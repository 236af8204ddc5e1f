import { isJsonObject, type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'

/** The type of an event of the provider; `event` parses it on demand. */
export type ServerEvent = { readonly type: string; event(): JsonObject | undefined }

const headBytes = 512
const typePattern = /^\s*\{\s*"type"\s*:\s*"([a-z0-9_.]+)"/
const responseIdPattern = /"response_id"\s*:\s*"([^"\\]{1,256})"/

/**
 * Reads the type of an event. Most events are audio, which is not parsed: providers send the type first. An
 * event in another order is parsed. Undefined for other texts.
 */
export function readServerEvent(bytes: Buffer): ServerEvent | undefined {
  const [, first] = typePattern.exec(bytes.toString('latin1', 0, headBytes)) ?? []
  if (first !== undefined) return { type: first, event: () => parseJsonObject(bytes.toString()) }
  const event = parseJsonObject(bytes.toString())
  return typeof event?.['type'] === 'string' ? { type: event['type'], event: () => event } : undefined
}

/** Audio of a second is some 64,000 bytes of base64, and 20 tokens. */
const audioBytesPerTextByte = 800

/** The response that a delta belongs to, and its size as a text of the same number of tokens. */
export function generatedBy(
  { type, event }: ServerEvent,
  bytes: Buffer,
): { id: string | undefined; bytes: number } {
  if (type.endsWith('audio.delta')) {
    const [, id] = responseIdPattern.exec(bytes.toString('latin1', 0, headBytes)) ?? []
    return { id, bytes: Math.ceil(bytes.length / audioBytesPerTextByte) }
  }
  const parsed = event()
  const { response_id: id, delta } = parsed ?? {}
  return {
    id: typeof id === 'string' ? id : undefined,
    bytes: typeof delta === 'string' ? Buffer.byteLength(delta) : 0,
  }
}

/** A member that is an object; empty without one. */
export function objectIn(event: JsonObject | undefined, name: string): JsonObject {
  const value = event?.[name]
  return isJsonObject(value) ? value : {}
}

/** The event that ends a response at the provider. */
export function cancelEvent(id: unknown): Buffer {
  const event =
    typeof id === 'string' ? { type: 'response.cancel', response_id: id } : { type: 'response.cancel' }
  return Buffer.from(JSON.stringify(event))
}
