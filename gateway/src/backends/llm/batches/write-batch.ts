import { editBytes, memberText } from '../../../lib/json/edit.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { prepareRequest } from '../attempt/provider-request.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField } from '../request/body-checks.ts'
import type { Call } from '../request/call.ts'
import type { Batch } from './batch.ts'
import { candidateAt, checkRequests, type OpenedRequest, refuseItem } from './batch-requests.ts'
import { notTranslated } from './read-batch.ts'

/**
 * Replaces the body of a call by the requests of its batch in the form that the provider receives as single
 * calls: with its model names, and the changes of guards and configuration. Returns a refusal for requests
 * that the provider does not support.
 */
export async function writeBatch(
  exchange: Exchange,
  call: Call,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const batch = call.object?.batch
  const [candidate] = call.candidates
  if (batch === undefined || candidate === undefined) return undefined
  const written: Buffer[] = []
  const refusal = await checkRequests(exchange, batch, rules, async (opened) => {
    const own = candidateAt(opened.call, candidate.target)
    if (own === undefined) return refuseItem(exchange, opened, movedTarget)
    const prepared = await prepareRequest(opened.exchange, opened.call, own, {
      timeLimits: { firstByteTimeoutMs: undefined, idleTimeoutMs: undefined },
      workQueue: rules.workQueue,
    })
    if (prepared.kind === 'refused') return refuseItem(exchange, opened, prepared.refusal)
    const { request, translation } = prepared
    if (translation !== undefined || request.body === undefined || !isBytes(request.body))
      return refuseItem(exchange, opened, notTranslated(batch, own))
    written.push(written.length === 0 ? noBytes : separators[batch.format.body])
    written.push(itemWith(opened, batch, Buffer.from(request.body)))
    return undefined
  })
  batch.items = []
  if (refusal !== undefined) return refusal
  if (batch.format.body === 'params') {
    call.bytes = Buffer.concat([messagesStart, ...written, messagesEnd])
    return undefined
  }
  const content = Buffer.concat([...written, separators.body])
  call.files = call.files?.map((file) => ({ ...file, content }))
  return undefined
}

const noBytes = Buffer.alloc(0)
const separators = { body: Buffer.from('\n'), params: Buffer.from(',') }
const messagesStart = Buffer.from('{"requests":[')
const messagesEnd = Buffer.from(']}')

function isBytes(body: unknown): body is Uint8Array | string {
  return typeof body === 'string' || body instanceof Uint8Array
}

/** The item with a body. An equal body leaves it unchanged. */
function itemWith({ json }: OpenedRequest & { kind: 'request' }, { format }: Batch, body: Buffer): Buffer {
  const text = body.toString()
  const edited = editBytes(json, {
    set: text === memberText(json, format.body) ? noEdits : new Map([[format.body, text]]),
  })
  // A line of a file has no line ends, which JSON allows between its tokens: servers in Python would read
  // what follows a carriage return as another request, which was not checked.
  return format.body === 'body' && (edited.includes(0x0a) || edited.includes(0x0d))
    ? Buffer.from(edited.toString().replace(/[\r\n]/g, ' '))
    : edited
}

const noEdits: ReadonlyMap<string, string> = new Map()

const movedTarget = invalidField('model', 'the model is served by another entry than before: try again')
