import { memberText } from '../../../lib/json/edit.ts'
import { readJson } from '../../../lib/json/read.ts'
import { readJsonMediaType } from '../../../net/http/json-media-type.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { readRequestBody } from '../../../pipeline/request-body.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField, notJson, validateJson } from '../request/body-checks.ts'
import { acceptObject } from './accept-object.ts'
import { messageFormat } from './batch.ts'
import { readBatchItems } from './read-batch.ts'
import { splitArray } from './split-items.ts'

/** Reads a new batch of Anthropic's API, which contains its requests. */
export async function readMessageBatch(exchange: Exchange, rules: RequestRules): Promise<Reply | undefined> {
  if (readJsonMediaType(exchange.facts.request.headers) !== 'json') return refuse(exchange, notJson)
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  exchange.facts.body = body.bytes
  const reading = await readJson(body.bytes, rules.workQueue, rules.jsonLimits)
  const valid = validateJson(reading, () => undefined)
  if (valid.kind === 'refused') return refuse(exchange, valid.refusal)
  const { json } = valid
  const names = Object.keys(json.value)
  const text = Array.isArray(json.value['requests']) ? memberText(json, 'requests') : undefined
  if (text === undefined || names.length > 1) return refuse(exchange, noRequests)
  const texts = await rules.workQueue.run(splitArray(Buffer.from(text)))
  const read = await readBatchItems(exchange, texts, messageFormat, rules)
  if (read.kind === 'refused') return read.reply
  const { batch, candidate } = read
  return acceptObject(
    exchange,
    {
      endpoint: 'message_batches',
      candidate,
      requestModel: batch.model,
      json: undefined,
      files: undefined,
      object: { action: 'create', suffix: '', stored: undefined, batch, charge: batch.facts },
    },
    rules,
  )
}

const noRequests = invalidField('requests', 'the body must have a list of requests and no other member')
