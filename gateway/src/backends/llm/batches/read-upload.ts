import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { findAmbiguousTopName } from '../../../pipeline/llm-names.ts'
import { endpointLabels } from '../attempt/endpoint-labels.ts'
import type { Candidate } from '../models/candidate.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField, notJson } from '../request/body-checks.ts'
import type { Form } from '../request/form/form.ts'
import { readFormRequest } from '../request/form/form-request.ts'
import { placeOf } from '../stored/sealed-ids.ts'
import { acceptObject, offers } from './accept-object.ts'
import { lineFormat } from './batch.ts'
import type { FileEndpoint, ObjectEndpoint } from './object-path.ts'
import { readBatchItems } from './read-batch.ts'
import { splitLines } from './split-items.ts'

/** Header with the model whose provider stores a file. */
const modelHeader = 'x-tollgate-model'

/** Reads an upload. A file of the purpose `batch` contains requests, which are checked as single calls. */
export async function readUpload(
  exchange: Exchange,
  endpoint: FileEndpoint,
  rules: RequestRules,
): Promise<Reply | undefined> {
  const read = await readFormRequest(exchange, rules, { notForm, findAmbiguousName: findAmbiguousTopName })
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { fields, files } = read.form
  // Files of Anthropic have no purpose.
  const purpose = endpoint === 'files' ? fields.value['purpose'] : ''
  if (typeof purpose !== 'string') return refuse(exchange, noPurpose)
  const [file] = files
  if (file === undefined || files.length > 1 || file.name !== 'file') return refuse(exchange, noFile)
  // Services have other names for it, such as `batch-api`.
  if (purpose.toLowerCase().includes('batch')) return readRequests(exchange, read.form, file.content, rules)
  const chosen = chooseTarget(exchange, endpoint, rules)
  if (chosen.kind === 'refused') return refuse(exchange, chosen.refusal)
  const object = {
    action: 'create',
    suffix: '',
    stored: undefined,
    batch: undefined,
    charge: undefined,
  } as const
  return acceptObject(exchange, { endpoint, ...chosen, json: fields, files, object }, rules)
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

type Chosen =
  | { readonly kind: 'chosen'; readonly candidate: Candidate; readonly requestModel: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** The target of the model in the header, else the only provider that has the call. */
function chooseTarget({ facts }: Exchange, endpoint: ObjectEndpoint, { models }: RequestRules): Chosen {
  const named = firstHeader(facts.request.headers, modelHeader)
  if (named !== undefined) {
    const resolution = models.resolve(named, facts)
    if (resolution.kind === 'refused') return resolution
    const [candidate] = resolution.candidates
    if (candidate !== undefined) return { kind: 'chosen', candidate, requestModel: named }
  }
  const candidates = (models.listed?.(facts) ?? [])
    .map((target): Candidate => ({ target, model: target.upstreamModel ?? target.configuredModel }))
    .filter((candidate) => offers(candidate, endpoint))
  const [first] = candidates
  const places = new Set(candidates.map(({ target }) => placeOf(target)))
  if (first === undefined || places.size > 1)
    return { kind: 'refused', refusal: unclear(endpoint, places.size) }
  return { kind: 'chosen', candidate: first, requestModel: first.target.configuredModel }
}

function unclear(endpoint: ObjectEndpoint, places: number): Refusal {
  const reason = places === 0 ? 'no provider has' : `${places} providers have`
  return {
    ...invalidField(
      modelHeader,
      `${reason} ${endpointLabels[endpoint]}: name a model of the provider in the header ${modelHeader}`,
    ),
    code: 'missing_model',
  }
}

const notForm: Refusal = { ...notJson, message: 'content-type must be multipart/form-data' }

const noPurpose = invalidField('purpose', 'purpose must be a text such as batch or user_data')

const noFile = invalidField('file', 'the form must have one file, named file')
