import { GatewayError } from '../../../lib/gateway-error.ts'
import { type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import type { LargeJson } from '../../../lib/json/large/large.ts'
import { answerLimits } from '../../../lib/json/limits.ts'
import { isLarge, type ReadJson, readJson, readJsonIncrementally } from '../../../lib/json/read.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import { writeJsonSteps } from '../../../lib/json/write.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Attempt } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { ambiguousNamesOf, answerOf, generatesText } from '../request/llm-message.ts'
import { createIdSeal, type IdSeal } from '../stored/seal-reply.ts'
import { readExactObject } from '../translate/exact-json.ts'
import { recordHeaders, recordObject, translationContext } from './record.ts'
import { filterDecodedHeaders, type ReplyOptions, readDecoded } from './reply-body.ts'
import { generatedTextBytes } from './usage.ts'

/**
 * Converts a response that is one JSON object, and records usage and model. Throws `GatewayError` if it is
 * none.
 */
export async function convertObject(
  attempt: Attempt,
  endpoint: Endpoint,
  reply: Reply,
  { maxReplyBytes, context, responseIds, objectIds }: ReplyOptions,
): Promise<Reply> {
  const { exchange, translation } = attempt
  const message = answerOf(exchange, endpoint, 'whole')
  const { workQueue } = context
  const received = await readDecoded(reply, maxReplyBytes)
  const seal = createIdSeal(attempt, { responseIds, objectIds })
  const bytes = seal ? await sealIds(seal, received, workQueue) : received
  const headers = filterDecodedHeaders(reply.headers)
  const { status } = reply
  if (!translation) {
    const checked = message?.readsAnswer ? await readUnambiguous(bytes, endpoint, workQueue) : undefined
    const reading = checked ? objectIn(checked) : readForUsage(bytes, workQueue)
    const object = required(reading instanceof Promise ? await reading : reading)
    recordObject(attempt, endpoint, object)
    recordHeaders(attempt, endpoint, reply.headers)
    succeed(attempt, endpoint, object)
    if (message && checked?.kind === 'object') message.answer = { kind: 'whole', json: checked }
    return { status, headers, body: bytes }
  }
  headers['content-type'] = 'application/json'
  // The input of a translated tool call may contain long numbers, which have to be exact.
  const reading = readExactObject(bytes, workQueue)
  const object = required(reading instanceof Promise ? await reading : reading)
  recordObject(attempt, translation.upstream, object)
  const translated = translation.reply(object, translationContext(attempt, context))
  const body = isLarge(bytes)
    ? await workQueue.run(writeJsonSteps(translated))
    : Buffer.from(JSON.stringify(translated))
  const json = message?.readsAnswer ? await readTranslated(body, translated, workQueue) : undefined
  succeed(attempt, translation.upstream, object)
  if (message && json) message.answer = { kind: 'whole', json }
  return { status, headers, body }
}

/** The body with ids for clients. */
async function sealIds(seal: IdSeal, bytes: Buffer, workQueue: WorkQueue): Promise<Buffer> {
  const reading = readForUsage(bytes, workQueue)
  const response = reading instanceof Promise ? await reading : reading
  return response === undefined ? bytes : seal.whole(bytes, response)
}

function required(message: JsonObject | undefined): JsonObject {
  if (message) return message
  throw new GatewayError('upstream_invalid', 'upstream answered something that is not a JSON object')
}

/** `endpoint` is the provider's. Called after the last step that can fail. */
function succeed(attempt: Attempt, endpoint: Endpoint, message: JsonObject): void {
  const isCounted = attempt.usage === undefined && generatesText(endpoint)
  attempt.generatedBytes = isCounted ? generatedTextBytes(endpoint, message) : 0
  attempt.succeeded = true
}

/** Reads a response for guards, which must not be readable in two ways. */
export async function readUnambiguous(
  bytes: Buffer,
  endpoint: Endpoint | 'passthrough',
  workQueue: WorkQueue,
): Promise<ReadJson> {
  const read = await readJson(bytes, workQueue)
  if (read.kind !== 'object') return read
  return ambiguousNamesOf(endpoint)(read.value) === undefined
    ? read
    : { kind: 'invalid', message: 'of names that differ only in case' }
}

async function readTranslated(body: Buffer, value: JsonObject, workQueue: WorkQueue): Promise<JsonText> {
  if (!isLarge(body)) return { kind: 'object', text: body.toString(), value }
  const json = await readJson(body, workQueue)
  if (json.kind === 'object') return json
  throw new GatewayError('upstream_invalid', 'upstream answered too large an object')
}

function objectIn(read: ReadJson | LargeJson): JsonObject | undefined {
  return read.kind === 'object' ? read.value : undefined
}

/** Reads a response that is forwarded without checks. */
function readForUsage(
  bytes: Buffer,
  workQueue: WorkQueue,
): JsonObject | undefined | Promise<JsonObject | undefined> {
  if (!isLarge(bytes)) return parseJsonObject(bytes.toString())
  const options = { limits: answerLimits, unchecked: JSON.parse }
  return readJsonIncrementally(bytes, workQueue, options).then(objectIn)
}
