import { isUtf8 } from 'node:buffer'
import type { ConfigStatus } from '../../config/live/live.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { readJson } from '../../lib/json/read.ts'
import { writeJsonIncrementally } from '../../lib/json/write-incrementally.ts'
import type { WorkQueue } from '../../lib/scheduling/work-queue.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import { type Body, isSource, readAll } from '../../net/http/body.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Log } from '../../telemetry/log.ts'
import {
  type Change,
  type ChangeOutcome,
  type Draft,
  type Envelope,
  type ImportedRecord,
  type Refusal,
  readDraft,
  refusal,
} from '../change/change.ts'
import { nameOfAddress } from '../change/hybrid-plan.ts'
import { type Allowances, findRestriction } from '../change/restrictions.ts'
import { effectiveConfig } from '../effective.ts'
import type { Expand } from '../hybrid/record-index.ts'
import { findKind, type Kind, kinds } from '../kinds.ts'
import type { Requester, Resources } from '../resources.ts'
import { maskedPlace, maskRecord } from '../secrets/secret-paths.ts'
import { exportedItems, readImported } from './import.ts'
import { openApiDocument } from './openapi.ts'
import { type ApiPath, readRequestTarget } from './path.ts'
import { type ApiQuery, type ApiUse, cursorAfter, passes, readQuery } from './query.ts'

export type ApiRequest = {
  readonly method: string
  /** Path and query, as sent. */
  readonly target: string
  readonly headers: Headers
  readonly body: Body
  /** Address of the client, for the audit log. */
  readonly address: string
  /** Who the client is, where that was found out. */
  readonly principal?: string | undefined
}

export type ApiOptions = {
  readonly resources: Resources
  readonly allowances: Allowances
  /** References that values may hold, replaced. */
  readonly expand: Expand
  readonly status: () => ConfigStatus
  /** JSON Schema of the configuration file. */
  readonly schema: object
  readonly version: string
  readonly log: Log
  /** Writes out the lines of the log so far: a change, or a read of secrets, is answered after its audit line. */
  readonly flushLog: () => Promise<void>
  /** Large bodies are read in slices. */
  readonly workQueue: WorkQueue
  /** Between parts of long answers. */
  readonly yieldPoint: YieldPoint
}

/** Largest request body, in bytes. */
const maxBodyBytes = 2 * 1024 * 1024
/** Changes are made one after another; with a database that hangs, each takes ten seconds. */
const maxWaitingChanges = 1_000

/**
 * The config resource API (specification, "Config resource API"; decisions 6). Answers everything under `/api/config`. Whoever
 * calls this has made sure that the client may: there is no authentication here.
 */
export function createConfigApi(options: ApiOptions): (request: ApiRequest) => Promise<Reply> {
  let waiting = 0
  return async (request) => {
    const mayChange = request.method === 'PUT' || request.method === 'DELETE'
    if (mayChange) waiting += 1
    try {
      if (mayChange && waiting > maxWaitingChanges) {
        return refuse(refusal(503, 'too many changes are waiting; try again later'), request)
      }
      return await answer(request, options)
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'request_too_large') {
        return refuse(refusal(413, `the body is larger than ${maxBodyBytes} bytes`), request)
      }
      // The client is gone, or stopped in the middle: nothing that anybody here could put right.
      if (error instanceof GatewayError && error.code === 'request_aborted') {
        return refuse(refusal(400, 'the body is not complete'), request)
      }
      options.log.error({ err: error }, 'a request to the config resource API failed')
      return refuse(refusal(500, 'internal error'), request)
    } finally {
      if (mayChange) waiting -= 1
      // An unread body would hold the connection.
      if (isSource(request.body)) request.body.cancel()
    }
  }
}

async function answer(request: ApiRequest, options: ApiOptions): Promise<Reply> {
  const path = readRequestTarget(request.target)
  switch (path.kind) {
    case 'unknown':
      return refuse(refusal(404, 'there is no such resource of the admin API'), request)
    case 'malformed':
      return refuse(refusal(400, path.message), request)
    case 'document': {
      const query = readQuery(path.query, 'document')
      if (typeof query === 'string') return refuse(refusal(400, query), request)
      return readOnly(request) ?? (await long(documents[path.name](options), options))
    }
    case 'all': {
      const isImport = request.method === 'PUT' && new URLSearchParams(path.query).has('import')
      const query = readQuery(path.query, isImport ? 'import' : 'list')
      if (typeof query === 'string') return refuse(refusal(400, query), request)
      if (isImport) return await imported(query, request, options)
      return readOnly(request) ?? (await listed(undefined, query, request, options))
    }
    case 'collection':
    case 'item':
      return await answerKind(path, request, options)
  }
}

const documents = {
  status: ({ resources, status, version }: ApiOptions) => ({
    version,
    ...status(),
    pending: resources.pending(),
    storage: resources.status(),
  }),
  schema: ({ schema }: ApiOptions) => schema,
  effective: ({ resources }: ApiOptions) => effectiveConfig(resources),
  openapi: ({ schema, version }: ApiOptions) => openApiDocument(schema, version),
}

type KindPath = Extract<ApiPath, { kind: 'collection' | 'item' }>

async function answerKind(path: KindPath, request: ApiRequest, options: ApiOptions): Promise<Reply> {
  const kind = findKind(path.kindName)
  if (kind === undefined) {
    return refuse(refusal(400, `unsupported config resource kind: ${path.kindName.slice(0, 200)}`), request)
  }
  const { method } = request
  const { resources } = options
  const isItem = path.kind === 'item'
  const use = useOf(path, method)
  if (use === undefined) {
    return notAllowed(method, isItem ? 'GET, HEAD, PUT, DELETE' : 'GET, HEAD, PUT', request)
  }
  const query = readQuery(path.query, use)
  if (typeof query === 'string') return refuse(refusal(400, query), request)
  if (path.kind === 'item' && use === 'read') {
    return await found(resources.find(kind, path.id), query, request, options)
  }
  if (use === 'list') return await listed(kind, query, request, options)
  const change = await readChange(path, kind, request, options)
  if ('status' in change) return refuse(change, request)
  const ifMatch = firstHeader(request.headers, 'if-match')
  if (ifMatch !== undefined && !isItem) {
    return refuse(refusal(400, 'if-match is for changes of a single record'), request)
  }
  const outcome = await resources.change({ change, dryRun: query.dryRun, ifMatch }, requesterOf(request))
  await options.flushLog()
  return changed(outcome, { isItem, query }, request)
}

/** Stores the records of an export, all of them or none. */
async function imported(query: ApiQuery, request: ApiRequest, options: ApiOptions): Promise<Reply> {
  const { resources, yieldPoint, flushLog } = options
  if (firstHeader(request.headers, 'if-match') !== undefined) {
    return refuse(refusal(400, 'if-match is for changes of a single record'), request)
  }
  const body = await readBody(request, options.workQueue)
  if ('status' in body) return refuse(body, request)
  const items = exportedItems(body.value)
  if ('status' in items) return refuse(items, request)
  const records: ImportedRecord[] = []
  for (const item of items) {
    const pause = yieldPoint()
    if (pause) await pause
    const record = readImported(item)
    if ('status' in record) return refuse(record, request)
    const refused = refuseDraft(record.kind, record.draft, options)
    if (refused) return refuse(refused, request)
    records.push(record)
  }
  const change: Change = { op: 'import', records }
  const outcome = await resources.change(
    { change, dryRun: query.dryRun, ifMatch: undefined },
    requesterOf(request),
  )
  await flushLog()
  return changed(outcome, { isItem: false, query }, request)
}

/** Why a value must not be stored, whatever else is stored: it has a mask for a secret, or leads where the API must not. */
function refuseDraft(
  kind: Kind,
  { name, value }: Draft,
  { allowances, expand }: Pick<ApiOptions, 'allowances' | 'expand'>,
): Refusal | undefined {
  const masked = maskedPlace(kind, name, value)
  if (masked !== undefined) return refusal(400, maskSent(masked))
  // As it will be read: a reference may have any default.
  const reason = findRestriction(kind, name, expand(value).value, allowances)
  return reason === undefined ? undefined : refusal(403, reason)
}

function useOf({ kind }: KindPath, method: string): ApiUse | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return kind === 'item' ? 'read' : 'list'
    case 'PUT':
      return 'write'
    case 'DELETE':
      return kind === 'item' ? 'remove' : undefined
    default:
      return undefined
  }
}

function requesterOf({ address, principal }: ApiRequest): Requester {
  return { address, principal }
}

async function readChange(
  path: KindPath,
  kind: Kind,
  request: ApiRequest,
  { allowances, expand, yieldPoint, workQueue }: ApiOptions,
): Promise<Change | Refusal> {
  if (path.kind === 'item' && request.method === 'DELETE') return { op: 'remove', kind, id: path.id }
  const body = await readBody(request, workQueue)
  if ('status' in body) return body
  const values = path.kind === 'item' ? itemValue(body.value, kind) : collectionValues(body.value, kind)
  if ('status' in values) return values
  const address = path.kind === 'item' ? nameOfAddress(kind, path.id) : undefined
  for (const value of values) {
    const pause = yieldPoint()
    if (pause) await pause
    const draft = readDraft(kind, value, kind.placement.kind === 'policies' ? address : undefined)
    if ('status' in draft) {
      // What the address says is looked at with the records; the record may be at fault all the same.
      if (path.kind === 'item' && address === undefined && kind.placement.kind === 'policies') continue
      return draft
    }
    const refused = refuseDraft(kind, draft, { allowances, expand })
    if (refused) return refused
  }
  const [value] = values
  if (path.kind === 'collection') return { op: 'upsert', kind, values }
  return value === undefined ? refusal(422, 'value is required') : { op: 'replace', kind, id: path.id, value }
}

function maskSent(place: string): string {
  return `${place.slice(0, 200)} is masked: send the secret itself, which a read with ?reveal=true returns`
}

async function readBody(
  { headers, body }: ApiRequest,
  workQueue: WorkQueue,
): Promise<{ value: JsonObject } | Refusal> {
  const type = firstHeader(headers, 'content-type') ?? ''
  if (!/^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i.test(type)) {
    return refusal(415, 'the content type must be application/json')
  }
  const encoding = firstHeader(headers, 'content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return refusal(415, 'the body must not be compressed')
  }
  const bytes = await readAll(body, maxBodyBytes, 'request_too_large')
  if (!isUtf8(bytes)) return refusal(400, 'the body is not valid UTF-8')
  const read = await readJson(bytes, workQueue)
  if (read.kind === 'invalid') return refusal(400, `the body is ${read.message}`)
  if (read.kind === 'duplicate')
    return refusal(400, `the body has the same key twice: ${read.path.slice(0, 200)}`)
  const mistake = unstorable(read.value)
  return mistake === undefined ? { value: read.value } : refusal(400, mistake)
}

/** What JSON can say and a record cannot: what would be changed on the way, or mean something else to JavaScript. */
function unstorable(value: JsonValue): string | undefined {
  if (typeof value === 'string') {
    return value.isWellFormed() ? undefined : 'the body holds text that is not valid Unicode'
  }
  if (typeof value === 'number') {
    const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
    return isExact ? undefined : 'the body holds a number that would be rounded; write it as text'
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, entry] of Object.entries(value)) {
    if (key === '__proto__') return 'the body holds a key __proto__'
    if (!key.isWellFormed()) return 'the body holds text that is not valid Unicode'
    const mistake = unstorable(entry)
    if (mistake !== undefined) return mistake
  }
  return undefined
}

/** Members of an envelope, which a client may send back as it got it. */
const envelopeMembers = new Set(['id', 'kind', 'name', 'revision', 'createdAt', 'updatedAt', 'shadowed'])

function itemValue(body: JsonObject, kind: Kind): JsonValue[] | Refusal {
  const value = body['value']
  if (value === undefined) return refusal(422, 'value is required')
  const stray = Object.keys(body).find((key) => key !== 'value' && !envelopeMembers.has(key))
  if (stray !== undefined) return refusal(400, `unknown member ${stray.slice(0, 100)} beside value`)
  return wrongKind(body, kind) ?? [value]
}

function wrongKind({ kind: sent }: JsonObject, kind: Kind): Refusal | undefined {
  return sent === undefined || sent === kind.name
    ? undefined
    : refusal(400, `kind must be ${kind.name}, as in the address`)
}

/** Specification, "Rules" 1: ids are not sent on create. */
function collectionValues(body: JsonObject, kind: Kind): JsonValue[] | Refusal {
  const { resources, ...rest } = body
  const [stray] = Object.keys(rest)
  if (stray !== undefined) return refusal(400, `unknown member ${stray.slice(0, 100)} beside resources`)
  if (resources === undefined) return []
  if (!Array.isArray(resources)) return refusal(422, 'resources must be a list')
  const values: JsonValue[] = []
  for (const item of resources) {
    if (!isJsonObject(item)) return refusal(422, 'resources must be a list of objects with a value')
    const { value, ...others } = item
    if (Object.hasOwn(others, 'id'))
      return refusal(400, 'resources must not include an id: it is made on create')
    const extra = Object.keys(others).find((key) => !envelopeMembers.has(key))
    if (extra !== undefined) return refusal(400, `unknown member ${extra.slice(0, 100)} beside value`)
    const wrong = wrongKind(item, kind)
    if (wrong !== undefined) return wrong
    if (value === undefined) return refusal(422, 'every item of resources needs a value')
    values.push(value)
  }
  return values
}

function readOnly(request: ApiRequest): Reply | undefined {
  const { method } = request
  return method === 'GET' || method === 'HEAD' ? undefined : notAllowed(method, 'GET, HEAD', request)
}

function notAllowed(method: string, allowed: string, request: ApiRequest): Reply {
  const reply = refuse(refusal(405, `method ${method.slice(0, 50)} is not allowed here`), request)
  return { ...reply, headers: { ...reply.headers, allow: allowed } }
}

async function listed(
  kind: Kind | undefined,
  query: ApiQuery,
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  const all = options.resources.list(kind)
  if ('status' in all) return refuse(all, request)
  if (query.reveal) await auditReveal({ kind: kind?.name ?? '*' }, request, options)
  const { page, filter } = query
  if (filter === undefined && page.limit === undefined && page.after === undefined) {
    return await long({ resources: shownOf(all, query) }, options)
  }
  return await long(await pageOf(all, query, options), options)
}

async function pageOf(
  all: Iterable<Envelope>,
  { page, filter, reveal }: ApiQuery,
  { yieldPoint }: ApiOptions,
): Promise<{ resources: Envelope[]; nextCursor?: string }> {
  const { limit = Number.POSITIVE_INFINITY, after } = page
  const resources: Envelope[] = []
  for (const envelope of all) {
    const pause = yieldPoint()
    if (pause) await pause
    if (after !== undefined && !isBehind(envelope, after)) continue
    // A filter sees as much as the answer shows: a masked member cannot be guessed with it.
    const record = shown(envelope, reveal)
    if (filter !== undefined && !passes(record, filter)) continue
    const last = resources.at(-1)
    if (last !== undefined && resources.length >= limit) return { resources, nextCursor: cursorAfter(last) }
    resources.push(record)
  }
  return { resources }
}

/** Lists are in the order of kinds, and then of ids. */
function isBehind(one: { kind: string; id: string }, other: { kind: string; id: string }): boolean {
  const [rank, otherRank] = [one, other].map(({ kind }) => kinds.findIndex(({ name }) => name === kind))
  return rank === otherRank ? one.id > other.id : (rank ?? 0) > (otherRank ?? 0)
}

function* shownOf(envelopes: Iterable<Envelope>, { reveal }: ApiQuery): Generator<Envelope> {
  for (const envelope of envelopes) yield shown(envelope, reveal)
}

/** A record as it is answered: secrets are masked unless the request asks for them. */
function shown(envelope: Envelope, reveal: boolean): Envelope {
  const kind = findKind(envelope.kind)
  if (reveal || kind === undefined) return envelope
  return { ...envelope, value: maskRecord(kind, envelope.name, envelope.value) }
}

async function auditReveal(
  record: { kind: string; id?: string },
  request: ApiRequest,
  { log, flushLog }: ApiOptions,
): Promise<void> {
  log.info({ audit: { op: 'reveal', ...record, ...requesterOf(request) } }, 'config resource secrets read')
  await flushLog()
}

async function found(
  envelope: Envelope | Refusal,
  { reveal }: ApiQuery,
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  if ('status' in envelope) return refuse(envelope, request)
  if (reveal) await auditReveal({ kind: envelope.kind, id: envelope.id }, request, options)
  return json(200, shown(envelope, reveal), tagOf(envelope))
}

function changed(
  outcome: ChangeOutcome,
  { isItem, query: { dryRun, reveal } }: { isItem: boolean; query: ApiQuery },
  request: ApiRequest,
): Reply {
  switch (outcome.kind) {
    case 'refused':
      return refuse(outcome, request)
    case 'removed': {
      const message = dryRun
        ? 'Configuration resource can be deleted'
        : 'Configuration resource deleted successfully'
      return json(200, { status: 'success', message })
    }
    case 'stored': {
      const [first] = outcome.resources
      const resources = outcome.resources.map((envelope) => shown(envelope, reveal))
      return json(200, { resources }, isItem && first && !dryRun ? tagOf(first) : {})
    }
  }
}

function tagOf({ revision }: { readonly revision?: number }): Headers {
  return revision === undefined ? {} : { etag: `"${revision}"` }
}

/** A bare JSON string, or RFC 9457 where the client asks for it. */
function refuse({ status, message }: Refusal, { headers }: ApiRequest): Reply {
  const accept = firstHeader(headers, 'accept') ?? ''
  if (!/application\/problem\+json/i.test(accept)) return json(status, message)
  const title = titles[status] ?? 'Error'
  const reply = json(status, { type: 'about:blank', title, status, detail: message })
  return { ...reply, headers: { ...reply.headers, 'content-type': 'application/problem+json' } }
}

const titles: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

function json(status: number, value: unknown, headers: Headers = {}): Reply {
  return { status, headers: { ...jsonHeaders, ...headers }, body: Buffer.from(JSON.stringify(value)) }
}

/** An answer that may have 100,000 records in it. */
async function long(value: unknown, { yieldPoint }: ApiOptions): Promise<Reply> {
  return { status: 200, headers: { ...jsonHeaders }, body: await writeJsonIncrementally(value, yieldPoint) }
}

/** To be copied: policies of a gateway write into the headers of a reply. */
const jsonHeaders: Readonly<Headers> = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}
