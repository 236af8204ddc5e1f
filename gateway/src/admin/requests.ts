import { type LedgerQueries, QueryRefused } from '../ledger/query/query.ts'
import { type Json, type OpenApiPart, ref, responses } from '../resources/api/openapi-part.ts'
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

const object: Json = { type: 'object' }
const objects: Json = { type: 'array', items: object }

const explanation: Json = {
  type: ['object', 'null'],
  description: 'Decisions of each step; null if `config.logging.explain` excludes the request.',
  properties: {
    cause: { type: 'string', description: 'Cause of the outcome in one sentence.' },
    outcome: object,
    times: { type: 'object', description: 'Milliseconds of the phases.' },
    key: object,
    identity: object,
    attempts: objects,
    cache: { type: 'string', description: 'Result of the response cache: `hit` or `miss`.' },
    limits: objects,
    budgets: objects,
    guards: objects,
    items: { ...objects, description: 'MCP tools, prompts and resources that rules decided on.' },
    policies: objects,
    routing: object,
    truncated: { type: 'array', items: { type: 'string' }, description: 'Omitted sections.' },
  },
}

export const requestsOpenApi: OpenApiPart = {
  paths: {
    [path]: {
      parameters: [
        {
          name: 'id',
          in: 'path',
          required: true,
          description: 'Value of `x-request-id` in the response of the gateway.',
          schema: { type: 'string' },
        },
      ],
      get: {
        summary: 'One request, and why it was refused, failed or was slow.',
        responses: responses({ type: 'object', properties: { request: ref('LogEntry'), explanation } }),
      },
    },
  },
}
