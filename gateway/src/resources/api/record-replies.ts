import type { Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { type ChangeOutcome, type Envelope, notFound } from '../change/change.ts'
import { findKind, type Kind, kinds } from '../kinds.ts'
import { pageOfRecords, type RecordPage } from '../records/record-list.ts'
import { type ConfigRecord, configRecords, findConfigRecord, viewRecord } from '../records/records.ts'
import { maskRecord } from '../secrets/secret-paths.ts'
import { type ApiQuery, cursorAfter, passes } from './query.ts'
import { json, largeJson, refuse } from './replies.ts'
import type { ApiOptions, ApiRequest } from './request.ts'

/** Response with the records of one kind, or of all kinds. */
export async function listReply(
  kind: Kind | undefined,
  query: ApiQuery,
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  const listed = options.resources.list(kind)
  if (listed.kind === 'refused') return refuse(listed, request)
  const { envelopes } = listed
  if (query.reveal) await auditReveal({ kind: kind?.name ?? '*' }, request, options)
  const { page, filter, records } = query
  if (records !== undefined) {
    const { resources, yieldPoint } = options
    const all = filtered(configRecords(resources, envelopes, kind), query, options)
    const found = await pageOfRecords(all, records, { resources, yieldPoint })
    return await largeJson(viewsOf(found, query, options), options)
  }
  if (filter === undefined && page.limit === undefined && page.after === undefined) {
    return await largeJson({ resources: shownOf(envelopes, query) }, options)
  }
  return await largeJson(await pageOf(envelopes, query, options), options)
}

/** Records that match the filters of a query. Filters match the returned value. */
function* filtered(
  records: Iterable<ConfigRecord>,
  { filter, reveal }: ApiQuery,
  options: ApiOptions,
): Generator<ConfigRecord> {
  for (const record of records) {
    if (filter === undefined || passes(viewRecord(record, options.resources, { ...options, reveal }), filter))
      yield record
  }
}

function viewsOf({ records, total, nextCursor }: RecordPage, { reveal }: ApiQuery, options: ApiOptions) {
  const views = records.map((record) => viewRecord(record, options.resources, { ...options, reveal }))
  return { resources: views, total, ...(nextCursor === undefined ? {} : { nextCursor }) }
}

async function pageOf(
  envelopes: Iterable<Envelope>,
  { page, filter, reveal }: ApiQuery,
  { yieldPoint }: ApiOptions,
): Promise<{ resources: Envelope[]; nextCursor?: string }> {
  const { limit = Number.POSITIVE_INFINITY, after } = page
  const resources: Envelope[] = []
  for (const envelope of envelopes) {
    const pause = yieldPoint()
    if (pause) await pause
    if (after !== undefined && !isAfter(envelope, after)) continue
    // Filters match the returned value: a masked member cannot be guessed with them.
    const record = shown(envelope, reveal)
    if (filter !== undefined && !passes(record, filter)) continue
    const last = resources.at(-1)
    if (last !== undefined && resources.length >= limit) return { resources, nextCursor: cursorAfter(last) }
    resources.push(record)
  }
  return { resources }
}

/** Order of lists: kinds, then ids. */
function isAfter(one: { kind: string; id: string }, other: { kind: string; id: string }): boolean {
  const [rank, otherRank] = [one, other].map(({ kind }) => kinds.findIndex(({ name }) => name === kind))
  return rank === otherRank ? one.id > other.id : (rank ?? 0) > (otherRank ?? 0)
}

function* shownOf(envelopes: Iterable<Envelope>, { reveal }: ApiQuery): Generator<Envelope> {
  for (const envelope of envelopes) yield shown(envelope, reveal)
}

/** The record with masked secrets, unless the request reveals them. */
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
  const { address, principal } = request
  log.audit({ op: 'reveal', ...record, address, principal }, 'config resource secrets read')
  await flushLog()
}

/** Response with one record of the database or the file. */
export async function itemReply(
  kind: Kind,
  address: string,
  { query: { reveal }, request, options }: { query: ApiQuery; request: ApiRequest; options: ApiOptions },
): Promise<Reply> {
  const { resources } = options
  const record = findConfigRecord(resources, kind, address)
  if (record === undefined) {
    const found = resources.find(kind, address)
    return refuse(found.kind === 'refused' ? found : notFound(kind, address), request)
  }
  const view = viewRecord(record, resources, { ...options, reveal })
  if (reveal) await auditReveal({ kind: kind.name, id: view.id }, request, options)
  return json(200, view, tagOf(view))
}

/** Response to a change. */
export function changeReply(
  outcome: ChangeOutcome,
  { isItem, query: { dryRun, reveal } }: { isItem: boolean; query: ApiQuery },
  request: ApiRequest,
  options: ApiOptions,
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
      return json(200, { resources }, isItem && first && !dryRun ? tagOfStored(first, options) : {})
    }
  }
}

/** Envelopes of the file have no revision (specification, "Resource envelope"), their reply has. */
function tagOfStored(envelope: Envelope, options: ApiOptions): Headers {
  const kind = findKind(envelope.kind)
  if (envelope.revision !== undefined || kind === undefined) return tagOf(envelope)
  const { resources } = options
  const record = findConfigRecord(resources, kind, envelope.id)
  return record === undefined ? {} : tagOf(viewRecord(record, resources, { ...options, reveal: false }))
}

function tagOf({ revision }: { readonly revision?: number | string }): Headers {
  return revision === undefined ? {} : { etag: `"${revision}"` }
}
