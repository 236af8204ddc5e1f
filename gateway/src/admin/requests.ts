import { type LedgerQueries, QueryRefused } from '../ledger/query/query.ts'
import { body, type OpenApiPart, ref, responses } from '../resources/api/openapi-part.ts'
import { refusal } from '../resources/change/change.ts'
import type { AdminEndpoint, AdminResult } from './api.ts'
import { detailedEntry } from './logs/entry.ts'
import { notConfigured } from './logs/logs.ts'

const path = '/api/requests/{id}'

/** Longest id that is looked up; ids have 36 characters. */
const maxIdLength = 600

const unknownId =
  'no request has this id: it may have been written within the last second, be older than config.logging.database.retention, or not be an LLM request or MCP call'

/** Endpoint of one request with its explanation. `queries` is undefined without a ledger. */
export function requestsEndpoint(queries: Pick<LedgerQueries, 'readRequest'> | undefined): AdminEndpoint {
  return {
    path,
    methods: {
      GET: {
        respond: async ({ parameters }) =>
          queries === undefined ? notConfigured : await read(queries, parameters.get('id') ?? ''),
      },
    },
  }
}

async function read({ readRequest }: Pick<LedgerQueries, 'readRequest'>, id: string): Promise<AdminResult> {
  if (id.length > maxIdLength || id.includes('\0')) return refusal(404, unknownId)
  try {
    const details = await readRequest(id)
    if (details === undefined) return refusal(404, unknownId)
    const explanation = explanationOf(details.explanation)
    return { kind: 'json', value: { request: detailedEntry(details, false), explanation } }
  } catch (error) {
    if (error instanceof QueryRefused) return refusal(503, error.message)
    throw error
  }
}

/** Null without an explanation, or if the ledger truncated it. */
function explanationOf(text: string | undefined): unknown {
  if (text === undefined) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
