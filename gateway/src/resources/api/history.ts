import { firstHeader } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { type Refusal, refusal } from '../change/change.ts'
import { readHistoryFilter } from '../history/history-query.ts'
import { type HistoryDetail, summaryOf, viewHistory } from '../history/history-view.ts'
import { revertOf } from '../history/revert.ts'
import { findKind } from '../kinds.ts'
import type { HistoryRecord } from '../stores/store.ts'
import type { ApiPath } from './path.ts'
import { readQuery } from './query.ts'
import { refuseDraft } from './read-change.ts'
import { changeReply } from './record-replies.ts'
import { largeJson, notAllowed, refuse } from './replies.ts'
import { type ApiOptions, type ApiRequest, requesterOf } from './request.ts'

export type HistoryPath = Extract<ApiPath, { kind: 'history' | 'recordedChange' | 'revert' }>

/** Responds to `/api/config/history`: lists, shows and reverts recorded changes. */
export async function respondToHistory(
  path: HistoryPath,
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  const { method } = request
  if (path.kind === 'revert') {
    return method === 'POST' ? await revert(path, request, options) : notAllowed(method, 'POST', request)
  }
  if (method !== 'GET' && method !== 'HEAD') return notAllowed(method, 'GET, HEAD', request)
  return path.kind === 'history'
    ? await listReply(path.query, request, options)
    : await detailReply(path, request, options)
}

/** Records read for one response; a text filter may match few of them. */
const maxScannedRecords = 2_000
const pageRecords = 100

async function listReply(queryText: string, request: ApiRequest, options: ApiOptions): Promise<Reply> {
  const { resources, yieldPoint } = options
  const filter = readHistoryFilter(queryText, resources)
  if (filter.kind === 'invalid') return refuse(refusal(400, filter.message), request)
  const { query, text, limit } = filter
  const records: object[] = []
  let { below } = filter
  for (let scanned = 0; scanned < maxScannedRecords; ) {
    const page = await resources.history({ ...query, below, limit: pageRecords })
    if (page.kind === 'refused') return refuse(page, request)
    for (const record of page.records) {
      const pause = yieldPoint()
      if (pause) await pause
      if (records.length === limit) return await pageReply(records, below, options)
      below = record.id
      const view = viewHistory(record)
      if (text === undefined || textOf(view).includes(text)) records.push(summaryOf(view))
    }
    if (page.isLast) return await pageReply(records, undefined, options)
    scanned += page.records.length
  }
  return await pageReply(records, below, options)
}

function pageReply(
  records: readonly object[],
  below: number | undefined,
  options: ApiOptions,
): Promise<Reply> {
  return largeJson({ records, ...(below === undefined ? {} : { nextCursor: String(below) }) }, options)
}

/** The shown text: a filter on it cannot guess secrets. */
function textOf(view: HistoryDetail): string {
  return JSON.stringify(view).toLowerCase()
}

async function detailReply(
  { id, query }: HistoryPath & { kind: 'recordedChange' },
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  const read = readQuery(query, 'document')
  if (read.kind === 'invalid') return refuse(refusal(400, read.message), request)
  const record = await findRecord(id, options)
  if (record.kind === 'refused') return refuse(record, request)
  const kind = findKind(record.record.kind)
  const current = kind && options.resources.find(kind, record.record.resourceId)
  const revision = current?.kind === 'found' ? current.envelope.revision : undefined
  const detail = viewHistory(record.record)
  return await largeJson(
    { ...detail, ...(revision === undefined ? {} : { currentRevision: revision }) },
    options,
  )
}

/** Restores the value before a recorded change; checked like any other write. */
async function revert(
  { id, query: queryText }: HistoryPath & { kind: 'revert' },
  request: ApiRequest,
  options: ApiOptions,
): Promise<Reply> {
  const query = readQuery(queryText, 'remove')
  if (query.kind === 'invalid') return refuse(refusal(400, query.message), request)
  const record = await findRecord(id, options)
  if (record.kind === 'refused') return refuse(record, request)
  const planned = revertOf(record.record, options.resources)
  if (planned.kind === 'refused') return refuse(planned, request)
  const { change } = planned
  const { kind, draft } = change
  const refused = draft && refuseDraft(kind, draft, options)
  if (refused) return refuse(refused, request)
  const ifMatch = firstHeader(request.headers, 'if-match')
  const outcome = await options.resources.change(
    { change, dryRun: query.dryRun, ifMatch },
    requesterOf(request),
  )
  await options.flushLog()
  return changeReply(outcome, { isItem: true, query }, request, options)
}

type Found = { readonly kind: 'record'; readonly record: HistoryRecord }

async function findRecord(id: number | undefined, { resources }: ApiOptions): Promise<Found | Refusal> {
  const page = await resources.history({ id: id ?? 0, limit: 1 })
  if (page.kind === 'refused') return page
  const [record] = page.records
  return record === undefined
    ? refusal(404, 'there is no such change in the history; older changes may have been deleted')
    : { kind: 'record', record }
}
