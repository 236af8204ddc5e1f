import type { Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { ChangeOutcome, Envelope, Refusal } from '../change/change.ts'
import { findKind, type Kind, kinds } from '../kinds.ts'
import type { FoundResource } from '../resources.ts'
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
  const { page, filter } = query
  if (filter === undefined && page.limit === undefined && page.after === undefined) {
    return await largeJson({ resources: shownOf(envelopes, query) }, options)
  }
  return await largeJson(await pageOf(envelopes, query, options), options)
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

/** Response with one record. */
export async function itemReply(
  found: FoundResource | Refusal,
  { reveal }: ApiQuery,
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  if (found.kind === 'refused') return refuse(found, request)
  const { envelope } = found
  if (reveal) await auditReveal({ kind: envelope.kind, id: envelope.id }, request, options)
  return json(200, shown(envelope, reveal), tagOf(envelope))
}

/** Response to a change. */
export function changeReply(
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
