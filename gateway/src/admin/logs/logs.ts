import { type LedgerQueries, QueryRefused } from '../../ledger/query/query.ts'
import type { JsonObject } from '../../lib/json/json.ts'
import { type Refusal, refusal } from '../../resources/change/change.ts'
import type { AdminCall, AdminEndpoint, AdminOperation, AdminResult } from '../api.ts'
import { writeCursor } from './cursor.ts'
import { detailedEntry, logEntry } from './entry.ts'
import { checkMembers, InvalidRequest, readBoolean, readText } from './read-value.ts'
import { readSearchRequest } from './search-request.ts'
import { summaryReply } from './summary.ts'
import { readSummaryRequest } from './summary-request.ts'
import { createTails } from './tail.ts'

export type LogOptions = {
  /** Undefined without a ledger. */
  readonly queries: LedgerQueries | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Endpoints of the request log. `close` ends the event streams. */
export type LogEndpoints = { readonly endpoints: readonly AdminEndpoint[]; close(): void }

export const notConfigured: Refusal = refusal(
  404,
  'request log database is not configured: set config.logging.database or config.database',
)

const maxIdLength = 600

export function createLogEndpoints({ queries, now }: LogOptions): LogEndpoints {
  if (queries === undefined) {
    const endpoints = Object.values(logPaths).map((path) => ({
      path,
      methods: { POST: { respond: async () => notConfigured } },
    }))
    return { endpoints, close() {} }
  }
  const tails = createTails({ queries, now })
  const endpoints = [
    post(logPaths.search, (body) => search(queries, body)),
    post(logPaths.get, (body) => get(queries, body)),
    post(logPaths.summary, (body) => summarize(queries, body, now())),
    post(logPaths.tail, async (body) => {
      const stream = tails.open(readSearchRequest(body))
      if (stream === undefined) return refusal(503, 'too many tails of the request log are open')
      return { kind: 'reply', reply: { status: 200, headers: { ...eventStream }, body: stream } }
    }),
  ]
  return { endpoints, close: tails.close }
}

export const logPaths = {
  search: '/api/logs/search',
  get: '/api/logs/get',
  tail: '/api/logs/tail',
  summary: '/api/logs/analytics/summary',
} as const

const eventStream = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-accel-buffering': 'no',
}

function post(path: string, respond: (body: JsonObject) => Promise<AdminResult>): AdminEndpoint {
  const operation: AdminOperation = {
    async respond({ readJson }: AdminCall) {
      const read = await readJson()
      if (read.kind === 'refused') return read
      return await refusingErrors(() => respond(read.value))
    },
  }
  return { path, methods: { POST: operation } }
}

/** Maps invalid requests and refused queries to refusals. */
export async function refusingErrors(respond: () => Promise<AdminResult>): Promise<AdminResult> {
  try {
    return await respond()
  } catch (error) {
    if (error instanceof InvalidRequest) return refusal(400, error.message)
    if (error instanceof QueryRefused) return refusal(503, error.message)
    throw error
  }
}

async function search(queries: LedgerQueries, body: JsonObject): Promise<AdminResult> {
  const { query, includeAttributes } = readSearchRequest(body)
  const { requests, next } = await queries.search(query)
  const logs = requests.map((request) => logEntry(request, includeAttributes))
  return { kind: 'json', value: { logs, nextCursor: next === undefined ? null : writeCursor(next) } }
}

async function get(queries: LedgerQueries, body: JsonObject): Promise<AdminResult> {
  checkMembers(body, '', ['id', 'includePayload'])
  const id = readText(body['id'], 'id', maxIdLength)
  const includePayload = readBoolean(body['includePayload'], 'includePayload')
  const found = await queries.readRequest(id)
  return { kind: 'json', value: { log: found === undefined ? null : detailedEntry(found, includePayload) } }
}

async function summarize(queries: LedgerQueries, body: JsonObject, now: number): Promise<AdminResult> {
  const request = readSummaryRequest(body, now)
  const { from, to } = request.query.filter
  const [summary, options] = await Promise.all([
    queries.summarize(request.query),
    queries.readOptions({ from, to }),
  ])
  return { kind: 'json', value: summaryReply(request, summary, options) }
}
