import { ownerOf } from '../../../identity/owner.ts'
import { editTopLevel } from '../../../lib/json/edit.ts'
import type { JsonValue } from '../../../lib/json/json.ts'
import { readJson } from '../../../lib/json/read.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import { readJsonMediaType } from '../../../net/http/json-media-type.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { findAmbiguousTopName } from '../../../pipeline/llm-names.ts'
import { readRequestBody } from '../../../pipeline/request-body.ts'
import { acceptObject, type OpenedObject } from '../batches/accept-object.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField, notJson, validateJson } from '../request/body-checks.ts'
import type { Call } from '../request/call.ts'
import { readFormRequest } from '../request/form/form-request.ts'
import { chooseTarget } from './choose-target.ts'
import { readFormStart } from './read-form-start.ts'
import { isOfBatch, notForm } from './read-upload.ts'
import type { Upload } from './upload.ts'

const none = { batch: undefined, charge: undefined }

/** Reads a new upload in parts. Its parts are not read, hence it cannot be the input of a batch. */
export async function readNewUpload(exchange: Exchange, rules: RequestRules): Promise<Reply | undefined> {
  const read = await readBody(exchange, rules)
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { purpose } = read.json.value
  if (typeof purpose !== 'string') return refuse(exchange, noPurpose)
  if (isOfBatch(purpose)) return refuse(exchange, notOfBatch)
  const chosen = chooseTarget(exchange, 'uploads', rules)
  if (chosen.kind === 'refused') return refuse(exchange, chosen.refusal)
  const object = { action: 'create', suffix: '', stored: undefined, ...none } as const
  const { json } = read
  return acceptObject(exchange, { endpoint: 'uploads', ...chosen, json, files: undefined, object }, rules)
}

/** Reads a part of an upload, which is streamed if it is large. */
export async function readUploadPart(
  exchange: Exchange,
  opened: OpenedObject,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const started = await readFormStart(exchange, rules)
  if (started !== undefined) {
    const { fields, upload } = started
    const reply = acceptPart(
      exchange,
      opened,
      { fields, upload, name: upload.file.name, files: undefined },
      rules,
    )
    if (reply !== undefined) upload.release()
    return reply
  }
  const read = await readFormRequest(exchange, rules, { notForm, findAmbiguousName: findAmbiguousTopName })
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { fields, files } = read.form
  const name = files.length === 1 ? files[0]?.name : undefined
  return acceptPart(exchange, opened, { fields, files, name, upload: undefined }, rules)
}

type Part = {
  readonly fields: JsonText
  readonly files: Call['files']
  /** Undefined unless the form has one file. */
  readonly name: string | undefined
  readonly upload: Upload | undefined
}

function acceptPart(
  exchange: Exchange,
  { stored, candidate }: OpenedObject,
  { fields, files, name, upload }: Part,
  rules: RequestRules,
): Reply | undefined {
  if (name !== 'data' || Object.keys(fields.value).length > 0) return refuse(exchange, noData)
  const { requestModel } = stored
  const suffix = `/${encodeURIComponent(stored.id)}/parts`
  const object = { action: 'part', suffix, stored, ...none, upload } as const
  const call = { endpoint: 'uploads', candidate, requestModel, json: fields, files, object } as const
  return acceptObject(exchange, call, rules)
}

/** Reads the last call of an upload, which names its parts. */
export async function readUploadEnd(
  exchange: Exchange,
  { stored, candidate }: OpenedObject,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const read = await readBody(exchange, rules)
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const ids = partIds(exchange, read.json.value['part_ids'], stored.id, rules)
  if (ids === undefined) return refuse(exchange, unknownParts)
  const text = editTopLevel(read.json, { set: new Map([['part_ids', JSON.stringify(ids)]]) })
  const edited = validateJson(
    await readJson(Buffer.from(text), rules.workQueue, rules.jsonLimits),
    findAmbiguousTopName,
  )
  if (edited.kind === 'refused') return refuse(exchange, edited.refusal)
  const suffix = `/${encodeURIComponent(stored.id)}/complete`
  const object = { action: 'complete', suffix, stored, ...none } as const
  const { requestModel } = stored
  const call = {
    endpoint: 'uploads',
    candidate,
    requestModel,
    json: edited.json,
    files: undefined,
    object,
  } as const
  return acceptObject(exchange, call, rules)
}

/** Most parts of an upload: 8 GB in parts of 4 MB. */
const maxParts = 2_000

/** The ids at the provider of parts of one upload of this client; undefined for others. */
function partIds(
  exchange: Exchange,
  value: JsonValue | undefined,
  upload: string,
  { objectIds }: RequestRules,
): string[] | undefined {
  if (!Array.isArray(value) || value.length > maxParts) return undefined
  const owner = ownerOf(exchange)
  const found = value.flatMap((id) => {
    const part = typeof id === 'string' ? objectIds.open('upload_parts', id, owner) : undefined
    return part?.inputFile === upload ? part.id : []
  })
  return found.length === value.length ? found : undefined
}

type ReadBody =
  | { readonly kind: 'body'; readonly json: JsonText }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

async function readBody(exchange: Exchange, rules: RequestRules): Promise<ReadBody> {
  if (readJsonMediaType(exchange.facts.request.headers) !== 'json')
    return { kind: 'refused', refusal: notJson }
  const body = await readRequestBody(exchange, rules)
  if (body.kind === 'refused') return body
  exchange.facts.body = body.bytes
  const reading = await readJson(body.bytes, rules.workQueue, rules.jsonLimits)
  const read = validateJson(reading, findAmbiguousTopName)
  return read.kind === 'refused' ? read : { kind: 'body', json: read.json }
}

const noPurpose = invalidField('purpose', 'purpose must be a text such as user_data')

const notOfBatch = invalidField(
  'purpose',
  'uploads in parts cannot contain requests of a batch, which are checked: upload the file to /v1/files',
)

const noData = invalidField('data', 'the form must have one file, named data, and no other field')

const unknownParts: Refusal = {
  ...invalidField(
    'part_ids',
    `part_ids must be a list of at most ${maxParts} ids of parts that this client has added to the upload`,
  ),
  code: 'part_not_found',
}
