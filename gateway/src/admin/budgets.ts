import type { BudgetRequest } from '../config/budget-snapshot.ts'
import type { BudgetPage, BudgetState } from '../policies/budgets/snapshot.ts'
import { type Json, type OpenApiPart, responses } from '../resources/api/openapi-part.ts'
import { type Refusal, refusal } from '../resources/change/change.ts'
import type { AdminEndpoint, AdminResult } from './api.ts'

const path = '/api/budgets'
const statusPath = '/api/budgets/status'
const limits = {
  list: { default: 100, max: 500 },
  // Clients of agentgateway expect all budgets, and do not follow cursors.
  status: { default: 1_000, max: 1_000 },
} satisfies Record<string, Limits>
const wholeNumber = /^\d{1,4}$/

/** Endpoints of the state of budgets, which explains a refusal. */
export function budgetEndpoints(read: (request: BudgetRequest) => Promise<BudgetPage>): AdminEndpoint[] {
  return [
    {
      path,
      methods: {
        GET: {
          query: ['budget', 'value', 'apiKeyId', 'limit', 'cursor'],
          async respond({ query }): Promise<AdminResult> {
            const limit = readLimit(query.get('limit'), limits.list)
            if (limit.kind === 'refused') return limit
            const [budget, value, apiKeyId, cursor] = ['budget', 'value', 'apiKeyId', 'cursor'].map((name) =>
              query.get(name),
            )
            const page = await read({ kind: 'page', budget, value, apiKeyId, limit: limit.value, cursor })
            return { kind: 'json', value: page }
          },
        },
      },
    },
    {
      path: statusPath,
      methods: {
        GET: {
          query: ['apiKeyName', 'limit', 'cursor'],
          async respond({ query }): Promise<AdminResult> {
            const limit = readLimit(query.get('limit'), limits.status)
            if (limit.kind === 'refused') return limit
            const [apiKeyName, cursor] = ['apiKeyName', 'cursor'].map((name) => query.get(name))
            const page = await read({ kind: 'keys', apiKeyName, limit: limit.value, cursor })
            const { observedAt, budgets, nextCursor } = page
            return {
              kind: 'json',
              value: { observedAt, budgets: budgets.map((one) => keyStatus(one, observedAt)), nextCursor },
            }
          },
        },
      },
    },
  ]
}

type Limits = { readonly default: number; readonly max: number }

function readLimit(
  text: string | undefined,
  { default: fallback, max }: Limits,
): { readonly kind: 'limit'; readonly value: number } | Refusal {
  const value = text === undefined ? fallback : wholeNumber.test(text) ? Number(text) : 0
  return value >= 1 && value <= max
    ? { kind: 'limit', value }
    : refusal(400, `limit must be a whole number from 1 to ${max}`)
}

/** A budget in the shape of agentgateway. */
function keyStatus({ apiKeyName, budget, limit, usage, window, action }: BudgetState, observedAt: number) {
  const { start, end } = window
  return {
    apiKeyName,
    name: budget,
    limit,
    usage: { used: usage.used, remaining: usage.remaining, exceeded: usage.exceeded },
    window: { start, end, durationMs: end - start, expired: false },
    onBudgetExceeded: action === 'block' ? 'Block' : 'Audit',
    updatedAt: observedAt,
  }
}

function parameter(name: string, description: string, schema: Json = { type: 'string' }): Json {
  return { name, in: 'query', required: false, description, schema }
}

function pageParameters(limit: Limits): Json[] {
  return [
    parameter('limit', 'Budgets per page.', {
      ...{ type: 'integer', minimum: 1, maximum: limit.max, default: limit.default },
    }),
    parameter('cursor', '`nextCursor` of the previous page.'),
  ]
}

export const budgetsOpenApi: OpenApiPart = {
  paths: {
    [path]: {
      get: {
        summary: 'State of all budgets by value, those closest to their limit first.',
        parameters: [
          parameter('budget', 'Name of a budget.'),
          parameter('value', 'Value of the key expression.'),
          parameter('apiKeyId', 'Id of the virtual key with the budget.'),
          ...pageParameters(limits.list),
        ],
        responses: responses({ type: 'object' }),
      },
    },
    [statusPath]: {
      get: {
        summary: 'State of the budgets of virtual keys.',
        parameters: [
          parameter('apiKeyName', '`metadata.name` of a virtual key.'),
          ...pageParameters(limits.status),
        ],
        responses: responses({ type: 'object' }),
      },
    },
  },
}
