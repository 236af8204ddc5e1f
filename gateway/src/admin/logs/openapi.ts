import { filterFields } from '../../ledger/query/search/fields.ts'
import { groupOrders } from '../../ledger/query/summary/groups.ts'
import {
  body,
  errorResponse,
  type Json,
  type OpenApiPart,
  ref,
  responses,
} from '../../resources/api/openapi-part.ts'
import { attributeFields, filterNames } from './filters.ts'
import { logPaths } from './logs.ts'
import { groupFields } from './summary-request.ts'

const text: Json = { type: 'string' }
const integer: Json = { type: 'integer', minimum: 0 }
const number: Json = { type: 'number', minimum: 0 }
const flag: Json = { type: 'boolean' }
const time: Json = { type: 'string', format: 'date-time' }

const tokenNames = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'cachedInputTokens',
  'cacheCreationInputTokens',
  'reasoningTokens',
]

const timeRange: Json = {
  type: 'object',
  description: 'Completion times: `from` is included, `to` is not.',
  properties: { from: time, to: time },
  additionalProperties: false,
}

const searchBody: Json = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 500, default: 100 },
    cursor: { type: 'string', description: '`nextCursor` of the previous page.' },
    timeRange,
    filters: ref('LogFilters'),
    includeAttributes: { type: 'boolean', default: false },
  },
  additionalProperties: false,
}

/** OpenAPI of the request log. */
export const logsOpenApi: OpenApiPart = {
  paths: {
    [logPaths.search]: {
      post: {
        summary: 'Finds requests, newest first.',
        description:
          'A page reads a bounded number of rows. It may have fewer requests than `limit`, also none, and a `nextCursor` that continues from there.',
        requestBody: body(searchBody),
        responses: responses({
          type: 'object',
          properties: {
            logs: { type: 'array', items: ref('LogEntry') },
            nextCursor: { type: ['string', 'null'], description: '`null` at the end.' },
          },
        }),
      },
    },
    [logPaths.get]: {
      post: {
        summary: 'One request, with its prompt and response if these are stored.',
        requestBody: body({
          type: 'object',
          required: ['id'],
          properties: {
            id: { type: 'string', description: 'Value of `x-request-id` in the response of the gateway.' },
            includePayload: { type: 'boolean', default: false },
          },
          additionalProperties: false,
        }),
        responses: responses({
          type: 'object',
          properties: { log: { oneOf: [ref('LogEntry'), { type: 'null' }] } },
        }),
      },
    },
    [logPaths.tail]: {
      post: {
        summary: 'New requests of all replicas as an event stream.',
        description:
          'Events: `log` with `{"entry": LogEntry, "cursor": text}`, `skipped` if there are more requests than the stream sends, `heartbeat`, and `error` with `{"message": text}`. With the cursor of the last entry, the stream continues after it. It ends after an hour.',
        requestBody: body(searchBody),
        responses: {
          '200': { description: 'Event stream.', content: { 'text/event-stream': { schema: text } } },
          default: errorResponse,
        },
      },
    },
    [logPaths.summary]: {
      post: {
        summary: 'Usage and cost by time and by the values of at most two fields.',
        requestBody: body(summaryBody()),
        responses: responses(ref('LogSummary')),
      },
    },
  },
  schemas: {
    LogFilters: filters(),
    LogEntry: logEntry(),
    LogSummary: summary(),
    LogMeasures: measures(),
  },
}

function filters(): Json {
  const known: Readonly<Record<string, { readonly type: string }>> = filterFields
  const properties = Object.fromEntries(
    filterNames.map((name) => [name, filterOf(name === 'cost' ? 'real' : (known[name]?.type ?? 'text'))]),
  )
  return {
    type: 'object',
    description: 'All conditions must be true. At most 50 of them, and 1,000 values.',
    properties: {
      ...properties,
      httpStatus: filterOf('integer'),
      text: { type: 'string', description: 'Part of path, models, key name, user, error, tool or target.' },
      attributes: {
        type: 'object',
        properties: Object.fromEntries(Object.keys(attributeFields).map((name) => [name, filterOf('text')])),
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  }
}

function filterOf(type: string): Json {
  if (type === 'flag') return flag
  const value = type === 'text' ? text : number
  const special =
    type === 'text'
      ? { type: 'object', properties: { contains: text }, additionalProperties: false }
      : { type: 'object', properties: { min: number, max: number }, additionalProperties: false }
  return {
    oneOf: [value, { type: 'null' }, { type: 'array', items: { oneOf: [value, { type: 'null' }] } }, special],
  }
}

function logEntry(): Json {
  const optional = (schema: Json): Json => ({ oneOf: [schema, { type: 'null' }] })
  const texts = ['traceId', 'spanId', 'error', 'refusedBy', 'keyId', 'keyName', 'user', 'group', 'userAgent']
  return {
    type: 'object',
    description: 'An LLM request or MCP call. Unknown values are `null`.',
    properties: {
      id: text,
      kind: { enum: ['llm', 'mcp'] },
      startedAt: time,
      completedAt: time,
      durationMs: number,
      firstByteMs: optional(number),
      httpStatus: integer,
      ...Object.fromEntries(texts.map((name) => [name, optional(text)])),
      ...Object.fromEntries(['method', 'path', 'route', 'listener', 'client'].map((name) => [name, text])),
      genAi: {
        type: 'object',
        properties: {
          operationName: optional(text),
          providerName: optional(text),
          requestModel: optional(text),
          responseModel: optional(text),
        },
      },
      mcp: optional({
        type: 'object',
        properties: { method: text, target: optional(text), item: optional(text) },
      }),
      streaming: flag,
      attempts: integer,
      cache: optional({ enum: ['hit', 'miss'], description: 'Result of the response cache.' }),
      settles: optional({
        type: 'string',
        description: 'Id of the request whose estimated usage, cost and charges this entry corrects.',
      }),
      usage: {
        type: 'object',
        properties: {
          ...Object.fromEntries(tokenNames.map((name) => [name, optional(integer)])),
          estimated: flag,
        },
      },
      cost: optional({ type: 'number', description: 'US dollars, rounded.' }),
      costUsd: optional({ type: 'string', description: 'US dollars, exact decimal.' }),
      costStatus: optional({ enum: ['exact', 'estimated', 'unpriced', 'missing'] }),
      guards: { description: 'Outcomes of guards.' },
      limits: { description: 'Decisions of limits.' },
      charges: { type: 'array', items: { type: 'object' }, description: 'Charges to budgets.' },
      upstreamRequestId: optional(text),
      incomplete: flag,
      hasPayload: flag,
      hasExplanation: flag,
      attributes: { type: 'object', additionalProperties: text },
      payload: {
        type: 'object',
        properties: { requestPrompt: optional(text), responseCompletion: optional(text) },
      },
    },
  }
}

function summaryBody(): Json {
  const fields = [...groupFields, 'responseModel', 'httpStatus', 'attributes']
  return {
    type: 'object',
    properties: {
      timeRange: { ...timeRange, description: 'Default: the last 24 hours.' },
      filters: ref('LogFilters'),
      groupBy: {
        type: 'array',
        maxItems: 2,
        items: {
          type: 'object',
          required: ['field'],
          properties: {
            field: { enum: fields },
            key: { enum: Object.keys(attributeFields), description: 'Only with `attributes`.' },
          },
          additionalProperties: false,
        },
      },
      orderBy: {
        enum: groupOrders,
        default: 'requests',
        description: 'Order of the groups, descending. The first 100 are returned.',
      },
      bucketCount: { type: 'integer', minimum: 1, maximum: 500, default: 96, description: 'At most.' },
      bucketSeconds: { type: 'integer', minimum: 1, description: 'Default: selected by the server.' },
    },
    additionalProperties: false,
  }
}

function summary(): Json {
  const group: Json = {
    type: 'object',
    properties: {
      group: { type: 'object', description: 'Values by field.' },
      keyName: { type: 'string', description: 'Last name of the key of the group.' },
      other: { const: true, description: 'Sum of the groups beyond the first 100.' },
    },
  }
  const measured: Json = { allOf: [group, ref('LogMeasures')] }
  return {
    type: 'object',
    properties: {
      timeRange: { ...timeRange, description: 'Widened to whole hours or days if sums are read.' },
      bucketSeconds: { type: 'integer' },
      source: { enum: ['requests', 'hours', 'days'], description: 'Rows or sums that were read.' },
      complete: { type: 'boolean', description: 'Whether all requests were counted.' },
      coveredFrom: { ...time, description: 'Time from which all requests were counted, if not complete.' },
      buckets: {
        type: 'array',
        items: { allOf: [{ type: 'object', properties: { start: time } }, measured] },
      },
      groups: { type: 'array', items: measured },
      filterOptions: {
        type: 'object',
        description: 'Recent values by field.',
        additionalProperties: { type: 'array' },
      },
    },
  }
}

function measures(): Json {
  const optional = { type: ['number', 'null'] }
  return {
    type: 'object',
    properties: {
      ...Object.fromEntries(['requests', 'errors', ...tokenNames].map((name) => [name, integer])),
      estimatedRequests: integer,
      unpricedRequests: integer,
      cost: { type: 'number', description: 'US dollars, rounded.' },
      costUsd: { type: 'string', description: 'US dollars, exact decimal.' },
      durationMs: {
        type: 'object',
        description: 'Percentiles are estimated from a histogram.',
        properties: { average: optional, p50: optional, p95: optional, p99: optional },
      },
      firstByteMs: { type: 'object', properties: { average: optional } },
    },
  }
}
