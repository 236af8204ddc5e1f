import type { Config } from '../../config/schema.ts'
import { dayMs, parseDuration } from '../../lib/duration.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { firstHeader } from '../../net/http/headers.ts'
import { createNewKey } from '../../policies/api-key/new-key.ts'
import { digestOf, keyHashOf } from '../../policies/api-key/record.ts'
import { json } from '../../resources/api/replies.ts'
import { requesterOf } from '../../resources/api/request.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import { keyKind } from '../../resources/kinds.ts'
import type { AdminCall, AdminResult } from '../api.ts'
import { keyEntries } from './key-entries.ts'
import type { KeysContext } from './keys-options.ts'

const defaultOverlapMs = dayMs
const longestOverlapMs = 365 * dayMs

/** Replaces the secret of a key. The response alone contains the new one. */
export async function rotateKey(call: AdminCall, options: KeysContext): Promise<AdminResult> {
  const { request, parameters } = call
  const { resources, clock, randomBytes, newRequestId, flushLog } = options
  const body = await call.readJson()
  if (body.kind === 'refused') return body
  const { overlap, ...others } = body.value
  const [stray] = Object.keys(others)
  if (stray !== undefined) return refusal(400, `unknown member ${stray.slice(0, 100)}: known is overlap`)
  const read = readOverlap(overlap)
  if (read.kind === 'refused') return read
  const key = createNewKey(randomBytes)
  const rotation = { keyHash: keyHashOf(digestOf(key)), overlapMs: read.overlapMs, nowMs: clock.now() }
  const requestId = newRequestId()
  const outcome = await resources.change(
    {
      change: { op: 'rotate', kind: keyKind, id: parameters.get('id') ?? '', rotation },
      dryRun: false,
      ifMatch: firstHeader(request.headers, 'if-match'),
    },
    requesterOf({ ...request, requestId }),
  )
  await flushLog()
  if (outcome.kind === 'refused')
    return outcome.status === 404 ? await refuseMissing(parameters.get('id') ?? '', options) : outcome
  const [envelope] = outcome.kind === 'stored' ? outcome.resources : []
  if (envelope === undefined) return refusal(500, 'internal error')
  const { id, revision } = envelope
  const previousKeysExpireAt =
    read.overlapMs === 0 ? undefined : new Date(rotation.nowMs + read.overlapMs).toISOString()
  const headers = {
    'x-request-id': requestId,
    ...(revision === undefined ? {} : { etag: `"${revision}"` }),
  }
  return { kind: 'reply', reply: json(200, { id, key, previousKeysExpireAt, revision }, headers) }
}

/** Refuses a key that is not in `llm.policies.apiKey`: keys of other scopes are no config resources. */
async function refuseMissing(
  id: string,
  { resources, yieldPoint, derivedIds }: KeysContext,
): Promise<Refusal> {
  // The guard: the active configuration was validated.
  for (const entry of keyEntries(resources.effective().config as Config, derivedIds)) {
    const pause = yieldPoint()
    if (pause) await pause
    if (entry.id !== id) continue
    const fix = `replace it in the configuration of ${entry.scope}`
    return refusal(409, `only keys of llm.policies.apiKey can be rotated: ${fix}`)
  }
  return refusal(404, `key not found: ${id.slice(0, 200)}`)
}

function readOverlap(
  sent: JsonValue | undefined,
): { readonly kind: 'overlap'; readonly overlapMs: number } | Refusal {
  if (sent === undefined) return { kind: 'overlap', overlapMs: defaultOverlapMs }
  const overlapMs =
    sent === 0 || sent === '0' ? 0 : typeof sent === 'string' ? parseDuration(sent) : undefined
  if (overlapMs === undefined || overlapMs > longestOverlapMs)
    return refusal(400, 'overlap must be a duration from 0 to 365d, such as "24h"')
  return { kind: 'overlap', overlapMs }
}
