import { isUtf8 } from 'node:buffer'
import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import { readJson } from '../../lib/json/read.ts'
import type { WorkQueue } from '../../lib/scheduling/work-queue.ts'
import { readAll } from '../../net/http/body.ts'
import { firstHeader } from '../../net/http/headers.ts'
import { type Refusal, refusal } from '../change/change.ts'
import type { ApiRequest } from './request.ts'

/** Largest request body, in bytes. */
export const maxBodyBytes = 2 * 1024 * 1024

/** Reads the JSON object of a request body. Throws `GatewayError` if the body is too large or incomplete. */
export async function readBody(
  { headers, body }: ApiRequest,
  workQueue: WorkQueue,
): Promise<{ readonly kind: 'read'; readonly value: JsonObject } | Refusal> {
  const type = firstHeader(headers, 'content-type') ?? ''
  if (!/^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i.test(type)) {
    return refusal(415, 'the content type must be application/json')
  }
  const encoding = firstHeader(headers, 'content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return refusal(415, 'the body must not be compressed')
  }
  const bytes = await readAll(body, maxBodyBytes, 'request_too_large')
  if (!isUtf8(bytes)) return refusal(400, 'the body is not valid UTF-8')
  const read = await readJson(bytes, workQueue)
  if (read.kind === 'invalid') return refusal(400, `the body is ${read.message}`)
  if (read.kind === 'duplicate')
    return refusal(400, `the body has the same key twice: ${read.path.slice(0, 200)}`)
  const mistake = unstorable(read.value)
  return mistake === undefined ? { kind: 'read', value: read.value } : refusal(400, mistake)
}

/** Reason why a value cannot be stored unchanged: invalid Unicode, inexact numbers, `__proto__`. */
function unstorable(value: JsonValue): string | undefined {
  if (typeof value === 'string') {
    return value.isWellFormed() ? undefined : 'the body contains text that is not valid Unicode'
  }
  if (typeof value === 'number') {
    const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
    return isExact ? undefined : 'the body contains a number that would be rounded; write it as text'
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, entry] of Object.entries(value)) {
    if (key === '__proto__') return 'the body contains a key __proto__'
    if (!key.isWellFormed()) return 'the body contains text that is not valid Unicode'
    const mistake = unstorable(entry)
    if (mistake !== undefined) return mistake
  }
  return undefined
}
