import { GatewayError } from '../../../../lib/gateway-error.ts'
import { editTopLevel, memberText } from '../../../../lib/json/edit.ts'
import { isJsonObject } from '../../../../lib/json/json.ts'
import { readJson } from '../../../../lib/json/read.ts'
import type { JsonText } from '../../../../lib/json/text.ts'
import type { WorkQueue } from '../../../../lib/scheduling/work-queue.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { BatchResults, Exchange } from '../../../../pipeline/exchange.ts'
import type { LlmMessage } from '../../../../pipeline/llm-message.ts'
import { readUnambiguous } from '../../reply/object-reply.ts'
import type { ClientEndpoint } from '../../request/endpoints.ts'
import type { CheckLine } from './check-lines.ts'

type CheckResponse = NonNullable<BatchResults['check']>

/** Results of a batch, and the check of their responses. */
export type CheckedResults = {
  readonly exchange: Exchange
  readonly endpoint: ClientEndpoint
  readonly results: BatchResults
  readonly check: CheckResponse
  readonly workQueue: WorkQueue
}

/** Where a result has its response: `response.body`, or `result.message` in batches of Anthropic. */
type Place = { readonly outer: string; readonly inner: string }

const openAiPlace: Place = { outer: 'response', inner: 'body' }
const anthropicPlace: Place = { outer: 'result', inner: 'message' }

/** Longer reasons of guards are cut off. */
const maxReasonLength = 2_000

/**
 * Creates the check of a line, whose response passes the guards of single calls: with their changes, or as an
 * error in the form of the batch. Lines that cannot be read become errors, too.
 */
export function createResultCheck(checked: CheckedResults): CheckLine {
  const { endpoint, workQueue } = checked
  const place = endpoint === 'messages' ? anthropicPlace : openAiPlace
  const refused = endpoint === 'messages' ? anthropicError : openAiError
  return async (line) => {
    if (line !== undefined && !line.some(isNotSpace)) return line
    const json = line && (await readJson(line, workQueue))
    if (line === undefined || json?.kind !== 'object') return refused(undefined, unreadable)
    const found = await responseIn(json, place, workQueue)
    if (found === 'none') return line
    const response = found && (await readUnambiguous(Buffer.from(found.text), endpoint, workQueue))
    if (!found || response?.kind !== 'object') return refused(json, unreadable)
    const outcome = await checkResponse(checked, response, found.text)
    if (outcome.kind === 'refused') return refused(json, outcome.reason)
    if (outcome.kind === 'unchanged') return line
    const changed = editTopLevel(found.wrapper, { set: new Map([[place.inner, outcome.text]]) })
    return Buffer.from(editTopLevel(json, { set: new Map([[place.outer, changed]]) }).replace(/[\r\n]/g, ' '))
  }
}

/** The text of a response and the object around it; `none` for failed requests, which have no answer. */
async function responseIn(
  json: JsonText,
  { outer, inner }: Place,
  workQueue: WorkQueue,
): Promise<{ text: string; wrapper: JsonText } | 'none' | undefined> {
  const value = json.value[outer]
  if (value === undefined || value === null) return 'none'
  if (!isJsonObject(value)) return undefined
  const { status_code: status, type } = value
  if (outer === 'result' ? type !== 'succeeded' : typeof status === 'number' && status >= 400)
    return value[inner] === undefined || outer === 'response' ? 'none' : undefined
  const wrapper = await readJson(Buffer.from(memberText(json, outer) ?? ''), workQueue)
  const text = wrapper.kind === 'object' ? memberText(wrapper, inner) : undefined
  return text === undefined || wrapper.kind !== 'object' ? undefined : { text, wrapper }
}

type Outcome =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'changed'; readonly text: string }
  | { readonly kind: 'refused'; readonly reason: string }

/** Passes one response to the guards, as that of a call of its own. */
async function checkResponse(
  { exchange, results, check }: CheckedResults,
  json: JsonText,
  text: string,
): Promise<Outcome> {
  const { llm } = exchange
  if (llm === undefined) throw new GatewayError('internal', 'the call was not read')
  exchange.guards ??= []
  const own: Exchange = {
    ...exchange,
    log: { refusedBy: undefined, errorCode: undefined, failure: undefined },
    llm: { ...llm, results: undefined, message: messageOf(results, json) },
  }
  const reply: Reply = {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(text),
  }
  const result = await check(own, reply)
  exchange.log.failure ??= own.log.failure
  const body = result.body instanceof Uint8Array ? Buffer.from(result.body).toString() : undefined
  if (own.log.refusedBy !== undefined)
    return { kind: 'refused', reason: (body ?? own.log.refusedBy).slice(0, maxReasonLength) }
  if (result === reply || body === text) return { kind: 'unchanged' }
  return body === undefined ? { kind: 'refused', reason: unreadable } : { kind: 'changed', text: body }
}

function messageOf({ api, guardrailsOfModels }: BatchResults, json: JsonText): LlmMessage {
  return {
    api,
    isAnswerOnly: true,
    request: () => undefined,
    replaceRequest: () => Promise.reject(new Error('a result has no request')),
    guardrailsOfModels,
    keepsReplaced: false,
    replaced: undefined,
    readsAnswer: true,
    answer: { kind: 'whole', json },
  }
}

const unreadable = 'the gateway cannot read the response, which the guards of the model check'

/** https://platform.openai.com/docs/api-reference/batch/request-output */
function openAiError(json: JsonText | undefined, message: string): Buffer {
  const { id = null, custom_id = null } = json?.value ?? {}
  const error = { code: 'guardrail_intervention', message }
  return Buffer.from(JSON.stringify({ id, custom_id, response: null, error }))
}

/** https://docs.anthropic.com/en/api/retrieving-message-batch-results */
function anthropicError(json: JsonText | undefined, message: string): Buffer {
  const { custom_id = null } = json?.value ?? {}
  const error = { type: 'error', error: { type: 'permission_error', message }, request_id: null }
  return Buffer.from(JSON.stringify({ custom_id, result: { type: 'errored', error } }))
}

function isNotSpace(byte: number): boolean {
  return byte > 0x20
}
