import { GatewayError } from '../../../lib/gateway-error.ts'
import { memberText } from '../../../lib/json/edit.ts'
import { isJsonObject } from '../../../lib/json/json.ts'
import { readJson } from '../../../lib/json/read.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { findAmbiguousLlmName } from '../../../pipeline/llm-names.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Target } from '../models/target.ts'
import { acceptCall, type RequestRules } from '../request/accept-call.ts'
import { invalidField, validateJson } from '../request/body-checks.ts'
import type { Call } from '../request/call.ts'
import { operations } from '../request/endpoints.ts'
import { configuredOf } from '../request/llm-message.ts'
import { placeOf } from '../stored/sealed-ids.ts'
import type { Batch, BatchFormat, BatchItem } from './batch.ts'
import { replaceFileIds } from './file-references.ts'

/** An item of a batch: the JSON object around a request, and the body of the request. */
type ReadItem =
  | { readonly kind: 'item'; readonly json: JsonText; readonly body: Buffer }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Reads an item. Its members are those of the API only, so that no server finds another request in it. */
export async function readItem(text: Buffer, format: BatchFormat, rules: RequestRules): Promise<ReadItem> {
  const reading = await readJson(text, rules.workQueue, rules.jsonLimits)
  const read = validateJson(reading, () => undefined)
  if (read.kind === 'refused') return read
  const { value } = read.json
  const unknown = Object.keys(value).find((name) => !format.members.has(name))
  if (unknown !== undefined) return invalid(`unknown member "${unknown.slice(0, 40)}"`)
  if (typeof value['custom_id'] !== 'string') return invalid('custom_id must be a string')
  if (format.members.has('method') && value['method'] !== 'POST') return invalid('method must be POST')
  const body = isJsonObject(value[format.body]) ? memberText(read.json, format.body) : undefined
  if (body === undefined) return invalid(`${format.body} must be an object`)
  return { kind: 'item', json: read.json, body: Buffer.from(body) }
}

function invalid(message: string): ReadItem {
  return { kind: 'refused', refusal: invalidField(undefined, message) }
}

/** A request of a batch as a call of its own. */
export type OpenedRequest =
  | {
      readonly kind: 'request'
      readonly exchange: Exchange
      readonly call: Call
      /** The item around the request. */
      readonly json: JsonText
      readonly position: number
    }
  | { readonly kind: 'refused'; readonly reply: Reply }

/** Reads a request of a batch, and resolves its model as for a single call of the same client. */
export async function openRequest(
  exchange: Exchange,
  item: BatchItem,
  { format, endpoint, model }: Pick<Batch, 'format' | 'endpoint' | 'model'>,
  rules: RequestRules,
): Promise<OpenedRequest> {
  const read = await readItem(item.text, format, rules)
  if (read.kind === 'refused') return { kind: 'refused', reply: refuseItem(exchange, item, read.refusal) }
  // Guards change the body with ids of the provider, so the client's ids are in the original one only.
  const found = replaceFileIds(exchange, read.body, rules.objectIds)
  if (found.kind === 'refused') return { kind: 'refused', reply: refuseItem(exchange, item, found.refusal) }
  const bytes = item.changed ?? (found.kind === 'replaced' ? found.bytes : read.body)
  const ofFiles = found.kind === 'replaced' ? { filePlace: found.place, ownFiles: found.ids } : {}
  const body = validateJson(await readJson(bytes, rules.workQueue, rules.jsonLimits), findAmbiguousLlmName)
  if (body.kind === 'refused') return { kind: 'refused', reply: refuseItem(exchange, item, body.refusal) }
  const { json } = body
  const own = exchangeOf(exchange, endpoint, rules)
  const issue = issueOf(json, model)
  const reply =
    issue === undefined
      ? acceptCall(own, { endpoint, bytes, json, files: undefined, model, ...ofFiles }, rules)
      : refuseItem(exchange, item, issue)
  if (reply !== undefined) return { kind: 'refused', reply }
  const { call } = own.llm ?? {}
  if (call === undefined) throw new GatewayError('internal', 'the request was not read')
  return { kind: 'request', exchange: own, call, json: read.json, position: item.position }
}

function issueOf({ value }: JsonText, model: string): Refusal | undefined {
  const { stream, background } = value
  if (value['model'] !== model)
    return invalidField('model', `all requests of a batch must have one model: "${model.slice(0, 100)}"`)
  if (stream !== undefined && stream !== null && stream !== false)
    return invalidField('stream', 'stream must be false in a batch')
  if (background !== undefined && background !== null && background !== false)
    return invalidField('background', 'background must be false in a batch')
  return undefined
}

/** The exchange of a request: that of the batch with facts of its own. */
function exchangeOf(exchange: Exchange, endpoint: Batch['endpoint'], rules: RequestRules): Exchange {
  return {
    ...exchange,
    facts: { ...exchange.facts, llm: undefined, llmRequest: undefined },
    guards: undefined,
    llm: {
      operation: operations[endpoint],
      estimate: rules.estimate,
      message: undefined,
      rulesOfModels: ({ llm }) => (llm?.call === undefined ? [] : configuredOf(llm.call, 'authorization')),
      call: undefined,
    },
  }
}

/** The candidate of a request at the target of its batch. */
export function candidateAt({ candidates }: Call, target: Target): Candidate | undefined {
  const { configuredModel } = target
  const place = placeOf(target)
  return candidates.find(
    (candidate) =>
      candidate.target.configuredModel === configuredModel && placeOf(candidate.target) === place,
  )
}

/** Bytes between two pauses for other requests. */
const sliceBytes = 64 * 1024

/** Most decisions of guards that a batch records. */
const maxDecisions = 100

/** A check of one request. Returns the reply of a refusal. */
type RequestCheck = (exchange: Exchange) => Reply | undefined | Promise<Reply | undefined>

/**
 * Checks each request of a batch as a call of its own, in order, and stores the bodies that the check
 * replaces. Returns the first refusal, with the position of its request in a header.
 */
export async function checkRequests(
  exchange: Exchange,
  batch: Pick<Batch, 'format' | 'endpoint' | 'model' | 'items'>,
  rules: RequestRules,
  check: (opened: OpenedRequest & { kind: 'request' }) => ReturnType<RequestCheck>,
): Promise<Reply | undefined> {
  let bytes = 0
  for (const item of batch.items) {
    bytes += item.text.byteLength
    if (bytes > sliceBytes) {
      bytes = 0
      await pause(exchange, rules.workQueue)
    }
    const opened = await openRequest(exchange, item, batch, rules)
    if (opened.kind === 'refused') return located(opened.reply, item)
    const { call } = opened
    const before = call.bytes
    const refusal = await check(opened)
    recordGuards(exchange, opened.exchange)
    if (refusal !== undefined) return located(refusal, item)
    if (call.bytes !== before) item.changed = call.bytes
  }
  return undefined
}

async function pause({ cancellation }: Exchange, workQueue: WorkQueue): Promise<void> {
  await workQueue.run([].values())
  if (cancellation.cancelled) throw new GatewayError('request_aborted', 'the client closed the connection')
}

/** Adds the decisions on a request to those on its batch. */
function recordGuards(exchange: Exchange, { guards }: Exchange): void {
  if (guards === undefined) return
  exchange.guards ??= []
  exchange.guards.push(...guards.slice(0, maxDecisions - exchange.guards.length))
}

/** The reply to a refused request, whose message names its position. */
export function refuseItem(exchange: Exchange, { position }: ItemPosition, refusal: Refusal): Reply {
  return refuse(exchange, { ...refusal, message: `request ${position}: ${refusal.message}` })
}

/** Names the request of a refusal by its position in a header, also of configured bodies. */
export function located(reply: Reply, { position }: ItemPosition): Reply {
  return { ...reply, headers: { ...reply.headers, 'x-tollgate-batch-request': String(position) } }
}

type ItemPosition = Pick<BatchItem, 'position'>
