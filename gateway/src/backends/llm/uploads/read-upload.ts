import type { JsonText } from '../../../lib/json/text.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { findAmbiguousTopName } from '../../../pipeline/llm-names.ts'
import { acceptObject } from '../batches/accept-object.ts'
import { lineFormat } from '../batches/batch.ts'
import type { FileEndpoint } from '../batches/object-path.ts'
import { readBatchItems } from '../batches/read-batch.ts'
import { splitLines } from '../batches/split-items.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField, notJson, validateJson } from '../request/body-checks.ts'
import type { Call } from '../request/call.ts'
import type { Form } from '../request/form/form.ts'
import { readFormRequest } from '../request/form/form-request.ts'
import { chooseTarget } from './choose-target.ts'
import { readFormStart, type StartedForm } from './read-form-start.ts'
import type { Upload } from './upload.ts'

/**
 * Reads an upload. A file of the purpose `batch` contains requests, which are checked as single calls. A
 * large file of another purpose is streamed, if the fields of the form precede it.
 */
export async function readUpload(
  exchange: Exchange,
  endpoint: FileEndpoint,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const started = await readFormStart(exchange, rules)
  if (started !== undefined && isStreamed(endpoint, started)) {
    const reply = readStreamed(exchange, endpoint, started, rules)
    if (reply !== undefined) started.upload.release()
    return reply
  }
  const read = await readFormRequest(exchange, rules, { notForm, findAmbiguousName: findAmbiguousTopName })
  if (read.kind === 'refused') return refuse(exchange, withAdvice(endpoint, read.refusal))
  const { fields, files } = read.form
  const purpose = purposeOf(endpoint, fields)
  if (purpose === undefined) return refuse(exchange, noPurpose)
  const [file] = files
  if (file === undefined || files.length > 1 || file.name !== 'file') return refuse(exchange, noFile)
  if (isOfBatch(purpose)) return readRequests(exchange, read.form, file.content, rules)
  return acceptFile(exchange, { endpoint, fields, files, upload: undefined }, rules)
}

/** The purpose of a file; files of Anthropic have none. Undefined if it is missing. */
function purposeOf(endpoint: FileEndpoint, { value: { purpose } }: JsonText): string | undefined {
  if (endpoint === 'anthropic_files') return ''
  return typeof purpose === 'string' ? purpose : undefined
}

/** Services have other names for it, such as `batch-api`. */
export function isOfBatch(purpose: string): boolean {
  return purpose.toLowerCase().includes('batch')
}

/** The purpose may be behind the file. */
function isStreamed(endpoint: FileEndpoint, { fields }: StartedForm): boolean {
  const purpose = purposeOf(endpoint, fields)
  return purpose !== undefined && !isOfBatch(purpose)
}

function readStreamed(
  exchange: Exchange,
  endpoint: FileEndpoint,
  { fields, upload }: StartedForm,
  rules: RequestRules,
): Reply | undefined {
  const valid = validateJson(fields, findAmbiguousTopName)
  if (valid.kind === 'refused') return refuse(exchange, valid.refusal)
  if (upload.file.name !== 'file') return refuse(exchange, noFile)
  return acceptFile(exchange, { endpoint, fields, files: undefined, upload }, rules)
}

type UploadedFile = {
  readonly endpoint: FileEndpoint
  readonly fields: JsonText
  readonly files: Call['files']
  readonly upload: Upload | undefined
}

/** Accepts a file without requests. */
function acceptFile(
  exchange: Exchange,
  { endpoint, fields, files, upload }: UploadedFile,
  rules: RequestRules,
): Reply | undefined {
  const chosen = chooseTarget(exchange, endpoint, rules)
  if (chosen.kind === 'refused') return refuse(exchange, chosen.refusal)
  const none = { suffix: '', stored: undefined, batch: undefined, charge: undefined }
  const object = { action: 'create', ...none, upload } as const
  return acceptObject(exchange, { endpoint, ...chosen, json: fields, files, object }, rules)
}

/** Names the order of fields in which a large file is streamed. */
function withAdvice(endpoint: FileEndpoint, refusal: Refusal): Refusal {
  if (refusal.code !== 'request_body_too_large') return refusal
  const advice =
    endpoint === 'files'
      ? 'files of the purpose batch are read into memory; others are streamed if purpose and all other fields precede the file'
      : 'a file is streamed if all other fields precede it'
  return { ...refusal, message: `${refusal.message}: ${advice}` }
}

async function readRequests(
  exchange: Exchange,
  { fields, files }: Form,
  content: Buffer,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const lines = await rules.workQueue.run(splitLines(content))
  const read = await readBatchItems(exchange, lines, lineFormat, rules)
  if (read.kind === 'refused') return read.reply
  const { batch, candidate } = read
  const object = { action: 'create', suffix: '', stored: undefined, batch, charge: undefined } as const
  const requestModel = batch.model
  return acceptObject(
    exchange,
    { endpoint: 'files', candidate, requestModel, json: fields, files, object },
    rules,
  )
}

export const notForm: Refusal = { ...notJson, message: 'content-type must be multipart/form-data' }

const noPurpose = invalidField('purpose', 'purpose must be a text such as batch or user_data')

const noFile = invalidField('file', 'the form must have one file, named file')
