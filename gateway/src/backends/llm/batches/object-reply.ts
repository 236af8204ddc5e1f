import { GatewayError } from '../../../lib/gateway-error.ts'
import { editTopLevel } from '../../../lib/json/edit.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import { sourceOf } from '../../../net/http/body.ts'
import { isPlain } from '../../../net/http/content-encoding.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import {
  cancelReply,
  filterDecodedHeaders,
  filterHeaders,
  type ReplyOptions,
  readDecoded,
} from '../reply/reply-body.ts'
import { maxMediaLineBytes } from '../reply/stream.ts'
import type { Attempt } from '../request/call.ts'
import { uploadEdits } from '../uploads/upload-reply.ts'
import type { ObjectCall } from './object-call.ts'
import type { BatchCharge, ObjectIds } from './object-ids.ts'
import { checkLines } from './results/check-lines.ts'
import { createResultCheck } from './results/check-results.ts'
import { watchResults } from './results/watch-results.ts'
import { edits, sealed } from './sealed-members.ts'
import { chargeOf, processOf } from './settlement/batch-charge.ts'
import { createResultSum, type ReadUse, useOfBatch, useOfMessageBatch } from './settlement/batch-use.ts'

/** Descriptions of files and batches have a few kilobytes, of which metadata is 10. */
const maxObjectBytes = 256 * 1024

/**
 * Converts a successful response about a file or batch: contents are streamed, and descriptions receive ids
 * for clients. Throws `upstream_invalid` for other descriptions than JSON objects.
 */
export async function convertObjectCall(
  attempt: Attempt,
  object: ObjectCall,
  reply: Reply,
  options: ReplyOptions,
): Promise<Reply> {
  const { objectIds: ids } = options
  if (object.action === 'content') {
    attempt.succeeded = true
    const watched = { ...reply, body: watchedBody(attempt, reply, options) }
    return checkedResults(attempt, watched, options) ?? { ...watched, headers: filterHeaders(reply.headers) }
  }
  // The provider has the object, whatever it responds.
  attempt.succeeded = true
  const json = readJsonObject((await readDecoded(reply, maxObjectBytes)).toString())
  if (json.kind !== 'object')
    throw new GatewayError('upstream_invalid', 'upstream answered something that is not a JSON object')
  const { endpoint } = attempt.call
  readUse(attempt, object, json.value, options)
  const charge = object.action === 'create' ? newCharge(attempt, object, options) : object.stored?.charge
  const set =
    endpoint === 'message_batches'
      ? messageBatchEdits(attempt, object, json.value, { ids, charge })
      : endpoint === 'uploads'
        ? uploadEdits(attempt, object, json, ids)
        : openAiEdits(attempt, object, json.value, { ids, charge })
  const headers = filterDecodedHeaders(reply.headers)
  return { status: reply.status, headers, body: Buffer.from(editTopLevel(json, { set })) }
}

/** The charge of a new batch. */
function newCharge(
  { exchange }: Attempt,
  { charge: facts }: ObjectCall,
  { context }: ReplyOptions,
): BatchCharge | undefined {
  if (facts === undefined) return undefined
  const estimate = exchange.llm?.estimate?.(exchange).picodollars
  return chargeOf(exchange, { facts, estimate, process: processOf(context) })
}

/** Records the use of a batch that has ended, if its description has it. */
function readUse(
  { exchange, call, candidate }: Attempt,
  { action, stored }: ObjectCall,
  value: JsonObject,
  { prices }: ReplyOptions,
): void {
  if (
    (action !== 'read' && action !== 'cancel') ||
    stored?.charge === undefined ||
    exchange.llm === undefined
  )
    return
  const pricing = { prices, candidate }
  const use =
    call.endpoint === 'batches'
      ? useOfBatch(value, pricing)
      : call.endpoint === 'message_batches'
        ? useOfMessageBatch(value, pricing)
        : undefined
  if (use !== undefined) exchange.llm.batchUse = () => ({ ...use, extent: 'all' })
}

/** The body of results, which are added up as they are forwarded. */
function watchedBody(
  { exchange, call, candidate }: Attempt,
  { status, headers, body }: Reply,
  { prices }: ReplyOptions,
): Reply['body'] {
  const charge = call.object?.stored?.charge
  const state = exchange.llm
  const isReadable = status === 200 && isPlain(firstHeader(headers, 'content-encoding'))
  if (charge === undefined || state === undefined || !isReadable) return body
  const sum = createResultSum(charge.endpoint, { prices, candidate })
  let extent: ReadUse['extent'] = 'part'
  state.batchUse = () => sum.use && { ...sum.use, extent }
  return watchResults(sourceOf(body), {
    result: sum.add,
    end() {
      extent = 'all'
    },
  })
}

/**
 * Results with a check of each line; undefined without guards. Throws `upstream_invalid` for a part of the
 * results, whose lines could be cut.
 */
function checkedResults(
  { exchange, call }: Attempt,
  { status, headers, body }: Reply,
  { context: { workQueue } }: ReplyOptions,
): Reply | undefined {
  const results = exchange.llm?.results
  const endpoint = call.object?.stored?.charge?.endpoint
  if (results?.check === undefined || endpoint === undefined) return undefined
  if (status !== 200 || !isPlain(firstHeader(headers, 'content-encoding'))) {
    cancelReply({ status, headers, body })
    throw new GatewayError('upstream_invalid', 'upstream answered a part of the results, or compressed them')
  }
  const check = createResultCheck({ exchange, endpoint, results, check: results.check, workQueue })
  return {
    status,
    headers: filterDecodedHeaders(headers),
    body: checkLines(sourceOf(body), check, maxMediaLineBytes),
  }
}

/** Ids for clients, and the charge of the batch that they contain. */
type Sealer = { readonly ids: ObjectIds; readonly charge: BatchCharge | undefined }

function openAiEdits(
  attempt: Attempt,
  object: ObjectCall,
  value: JsonObject,
  { ids, charge }: Sealer,
): Map<string, string> {
  const { stored, batch } = object
  const { endpoint } = attempt.call
  if (endpoint === 'files' || endpoint === 'anthropic_files') {
    const facts = { batch: batch?.facts ?? stored?.batch }
    return edits(value, { id: (id) => sealed(attempt, object, { endpoint, id, ids, ...facts }) })
  }
  const checked = { batch: stored?.batch }
  const input = object.action === 'create' ? stored?.id : stored?.inputFile
  const output = (id: string) => sealed(attempt, object, { endpoint: 'files', id, ids, charge })
  return edits(value, {
    id: (id) =>
      sealed(attempt, object, { endpoint: 'batches', id, ids, ...checked, inputFile: input, charge }),
    // A client finds the id that it has sent.
    input_file_id: (id) =>
      sealed(attempt, object, { endpoint: 'files', id, ids, ...(id === input ? checked : {}) }),
    output_file_id: output,
    // Errors have no usage.
    error_file_id: (id) => sealed(attempt, object, { endpoint: 'files', id, ids }),
  })
}

function messageBatchEdits(
  attempt: Attempt,
  object: ObjectCall,
  value: JsonObject,
  { ids, charge }: Sealer,
): Map<string, string> {
  const { request } = attempt.exchange.facts
  const id = typeof value['id'] === 'string' ? value['id'] : ''
  const text = sealed(attempt, object, { endpoint: 'message_batches', id, ids, charge })
  // SDKs request this address with the credential of the client, which is one of the gateway.
  const base = request.path.slice(0, request.path.indexOf(collection) + collection.length)
  return edits(value, {
    id: () => text,
    results_url: () => `${request.scheme}://${request.host}${base}/${text}/results`,
  })
}

const collection = '/messages/batches'
