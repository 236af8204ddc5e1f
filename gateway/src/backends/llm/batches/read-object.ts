import { readJson } from '../../../lib/json/read.ts'
import { readJsonMediaType } from '../../../net/http/json-media-type.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { findAmbiguousTopName } from '../../../pipeline/llm-names.ts'
import { readRequestBody } from '../../../pipeline/request-body.ts'
import { readList } from '../lists/read-list.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField, notJson, validateJson } from '../request/body-checks.ts'
import { readNewUpload, readUploadEnd, readUploadPart } from '../uploads/read-parts.ts'
import { readUpload } from '../uploads/read-upload.ts'
import { acceptObject, openObject } from './accept-object.ts'
import { isOfFiles, type ObjectAction, type ObjectEndpoint, type ObjectPath } from './object-path.ts'
import { endpointOfUrl } from './read-batch.ts'
import { readMessageBatch } from './read-message-batch.ts'

type ObjectRequest = ObjectPath & { readonly action: ObjectAction }

/** Reads a call about files or batches, which only the owner of each may make. */
export function readObject(
  exchange: Exchange,
  request: ObjectRequest,
  rules: RequestRules,
): Promise<Reply | undefined> | Reply | undefined {
  const { endpoint, action, id, tail } = request
  if (action === 'list') return readList(exchange, endpoint, rules)
  if (action === 'create') {
    if (isOfFiles(endpoint)) return readUpload(exchange, endpoint, rules)
    if (endpoint === 'uploads') return readNewUpload(exchange, rules)
    return endpoint === 'batches' ? readBatch(exchange, rules) : readMessageBatch(exchange, rules)
  }
  const found = openObject(exchange, { endpoint, id }, rules)
  if (found === undefined) return refuse(exchange, notFound(endpoint))
  const { stored, candidate } = found
  if (action === 'part') return readUploadPart(exchange, found, rules)
  if (action === 'complete') return readUploadEnd(exchange, found, rules)
  exchange.facts.body = new Uint8Array(0)
  return acceptObject(
    exchange,
    {
      endpoint,
      candidate,
      requestModel: stored.requestModel,
      json: undefined,
      files: undefined,
      object: {
        action,
        suffix: `/${encodeURIComponent(stored.id)}${tail}`,
        stored,
        batch: undefined,
        charge: undefined,
      },
    },
    rules,
  )
}

/** Reads a new batch of OpenAI's API, whose requests were checked when their file was uploaded. */
async function readBatch(exchange: Exchange, rules: RequestRules): Promise<Reply | undefined> {
  if (readJsonMediaType(exchange.facts.request.headers) !== 'json') return refuse(exchange, notJson)
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return refuse(exchange, body.refusal)
  exchange.facts.body = body.bytes
  const read = validateJson(
    await readJson(body.bytes, rules.workQueue, rules.jsonLimits),
    findAmbiguousTopName,
  )
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const unknown = Object.keys(read.json.value).find((name) => !members.has(name))
  if (unknown !== undefined) return refuse(exchange, unknownMember(unknown.slice(0, 40)))
  const { input_file_id: id, endpoint: url } = read.json.value
  const found = typeof id === 'string' ? openObject(exchange, { endpoint: 'files', id }, rules) : undefined
  if (found === undefined) return refuse(exchange, inputNotFound)
  const { stored, candidate } = found
  if (stored.batch === undefined) return refuse(exchange, inputNotChecked)
  if (typeof url !== 'string' || endpointOfUrl(url) !== stored.batch.endpoint)
    return refuse(exchange, otherEndpoint)
  return acceptObject(
    exchange,
    {
      endpoint: 'batches',
      candidate,
      requestModel: stored.requestModel,
      json: read.json,
      files: undefined,
      object: { action: 'create', suffix: '', stored, batch: undefined, charge: stored.batch },
    },
    rules,
  )
}

/** Others name requests or results that the gateway cannot check: `input_blob`, `output_folder` of Azure. */
const members: ReadonlySet<string> = new Set([
  ...['input_file_id', 'endpoint', 'completion_window', 'metadata', 'output_expires_after'],
])

function unknownMember(name: string): Refusal {
  return invalidField(
    name,
    `${name} is not supported in batches: remove it. Members are ${[...members].join(', ')}`,
  )
}

/** The refusal of an id that is unknown or belongs to another client. */
function notFound(endpoint: ObjectEndpoint): Refusal {
  const name = endpoint === 'uploads' ? 'upload' : isOfFiles(endpoint) ? 'file' : 'batch'
  const message = `No ${name} with this id, or it belongs to another client`
  return { status: 404, code: `${name}_not_found`, message }
}

const inputNotFound: Refusal = {
  ...invalidField(
    'input_file_id',
    'input_file_id must be the id of a file that this client has uploaded through the gateway',
  ),
  code: 'file_not_found',
}

const inputNotChecked = invalidField(
  'input_file_id',
  'input_file_id must be a file that was uploaded with the purpose batch',
)

const otherEndpoint = invalidField('endpoint', 'endpoint must be the url of the requests in the input file')
