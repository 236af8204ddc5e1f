import type { ExportPosition, ExportQuery, Granularity } from '../ledger/query/export/contents.ts'
import type { LedgerQueries } from '../ledger/query/query.ts'
import type { FilterField } from '../ledger/query/search/fields.ts'
import { dayMs, hourMs } from '../lib/duration.ts'
import type { BodySink, BodySource } from '../net/http/body.ts'
import { errorResponse, type OpenApiPart } from '../resources/api/openapi-part.ts'
import { refusal } from '../resources/change/change.ts'
import type { AdminEndpoint, AdminResult } from './api.ts'
import { notConfigured, refusingErrors } from './logs/logs.ts'
import { invalid, readText, readTime } from './logs/read-value.ts'

const usagePath = '/api/usage.csv'

const maxExports = 4
const maxTextLength = 4_096

/** Fields of the sums: for `groupBy`, and for parameters that filter. */
const usageFields = [
  'kind',
  'keyId',
  'user',
  'group',
  'route',
  'provider',
  'servedModel',
  'mcpTarget',
  'status',
] as const satisfies readonly FilterField[]

const filterFields = usageFields.filter((field) => field !== 'status')

const usageParameters: readonly string[] = ['from', 'to', 'rows', 'groupBy', 'granularity', ...filterFields]

export const usageOpenApi: OpenApiPart = {
  paths: {
    [usagePath]: {
      get: {
        summary: 'Usage and cost as a CSV file.',
        parameters: [
          { ...parameter('from', 'First time: RFC 3339, or a date for its start in UTC.'), required: true },
          parameter('to', 'End, not included. Default: now, up to the end of the hour or day.'),
          parameter('rows', '`sums` (default), or `requests` for a line of each request.'),
          parameter('granularity', 'Period of a line: `hour`, `day` (default) or `month`, in UTC.'),
          parameter(
            'groupBy',
            `Fields with a line for each value, separated by commas: ${usageFields.join(', ')}.`,
          ),
          ...filterFields.map((field) => parameter(field, `Only requests with this \`${field}\`.`)),
        ],
        responses: {
          '200': {
            description: 'CSV file (RFC 4180), streamed. `costUsd` is an exact decimal number.',
            content: { 'text/csv': { schema: { type: 'string' } } },
          },
          default: errorResponse,
        },
      },
    },
  },
}

function parameter(name: string, description: string): Record<string, unknown> {
  return { name, in: 'query', description, schema: { type: 'string' } }
}

/** Endpoint of the usage as a CSV file. */
export function usageEndpoint(queries: LedgerQueries | undefined, now: () => number): AdminEndpoint {
  let open = 0
  return {
    path: usagePath,
    methods: {
      GET: {
        query: usageParameters,
        async respond({ request, query }) {
          if (queries === undefined) return notConfigured
          return await refusingErrors(async (): Promise<AdminResult> => {
            const contents = readExport(query, now())
            const headers = csvHeaders(contents)
            if (request.method === 'HEAD')
              return { kind: 'reply', reply: { status: 200, headers, body: undefined } }
            if (open >= maxExports) return refusal(503, 'too many exports of usage are in progress')
            open += 1
            try {
              // Before the response, so that a refused query has a status.
              const first = await queries.exportPage({ query: contents, position: undefined })
              const body = exportBody(first, {
                read: (position) => queries.exportPage({ query: contents, position }),
                onEnd: () => {
                  open -= 1
                },
              })
              return { kind: 'reply', reply: { status: 200, headers, body } }
            } catch (error) {
              open -= 1
              throw error
            }
          })
        },
      },
    },
  }
}

/** Reads the parameters of an export. Throws `InvalidRequest`. */
function readExport(query: ReadonlyMap<string, string>, now: number): ExportQuery {
  const to = readTime(query.get('to'), 'to')
  const from = readTime(query.get('from'), 'from')
  if (from === undefined) throw invalid('from', 'is required: the first day or hour of the export')
  const conditions = filterFields.flatMap((field) => {
    const value = query.get(field)
    if (value === undefined) return []
    return [{ kind: 'values' as const, field, values: [readText(value, field, maxTextLength)] }]
  })
  const rows = query.get('rows') ?? 'sums'
  if (rows !== 'sums' && rows !== 'requests') throw invalid('rows', 'must be sums or requests')
  const granularity = readGranularity(query.get('granularity'))
  const unit = granularity === 'hour' ? hourMs : dayMs
  const end = to ?? (rows === 'requests' ? now : Math.ceil(now / unit) * unit)
  if (from >= end) throw invalid('from', 'must be before to')
  const filter = { from, to: end, conditions, text: undefined }
  if (rows === 'requests') {
    for (const name of ['groupBy', 'granularity'])
      if (query.has(name)) throw invalid(name, 'is not for rows=requests')
    return { kind: 'requests', filter }
  }
  if (from % unit !== 0 || end % unit !== 0) {
    const rule = granularity === 'hour' ? 'a whole hour' : 'a whole day in UTC, such as 2026-11-01'
    throw invalid(from % unit === 0 ? 'to' : 'from', `must be ${rule}`)
  }
  return { kind: 'usage', filter, granularity, groupBy: readGroupBy(query.get('groupBy')) }
}

function readGranularity(text: string | undefined): Granularity {
  if (text === undefined) return 'day'
  if (text !== 'hour' && text !== 'day' && text !== 'month')
    throw invalid('granularity', 'must be hour, day or month')
  return text
}

function readGroupBy(text: string | undefined): FilterField[] {
  if (text === undefined || text === '') return []
  const fields = text.split(',').map((name) => {
    const field = usageFields.find((known) => known === name.trim())
    if (field === undefined) throw invalid('groupBy', `must be a list of ${usageFields.join(', ')}`)
    return field
  })
  if (new Set(fields).size < fields.length) throw invalid('groupBy', 'must not contain a field twice')
  return fields
}

function csvHeaders(contents: ExportQuery): Record<string, string> {
  const { from, to } = contents.filter
  const range = [from, to].map((time) => new Date(time).toISOString().slice(0, 10)).join('-to-')
  const name = contents.kind === 'requests' ? 'requests' : 'usage'
  return {
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${name}-${range}.csv"`,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
}

type Page = { readonly csv: string; readonly next: ExportPosition | undefined }

type PageReader = { read(position: ExportPosition): Promise<Page>; onEnd(): void }

/** Streams pages: the next one is read when the client has received the one before. */
function exportBody(first: Page, { read, onEnd }: PageReader): BodySource {
  let sink: BodySink | undefined
  let page = first
  let state: 'paused' | 'reading' | 'ended' = 'paused'

  function end(): void {
    if (state !== 'ended') onEnd()
    state = 'ended'
  }

  async function readNext(position: ExportPosition): Promise<void> {
    state = 'reading'
    try {
      const next = await read(position)
      if (state !== 'reading') return
      page = next
      state = 'paused'
      write()
    } catch (error) {
      if (state !== 'reading') return
      end()
      // Not the end of the body: the client notices that the file is incomplete.
      sink?.fail(error instanceof Error ? error : new Error('export failed'))
    }
  }

  function write(): void {
    const { next } = page
    const isAccepted = page.csv === '' || sink?.write(Buffer.from(page.csv)) !== false
    if (state !== 'paused') return
    if (next === undefined) {
      end()
      sink?.end()
      return
    }
    page = { csv: '', next }
    if (isAccepted) void readNext(next)
  }

  return {
    start(into) {
      sink = into
      write()
    },
    resume() {
      if (state === 'paused') write()
    },
    cancel: end,
  }
}
