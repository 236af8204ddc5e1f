import type { BudgetRequest, BudgetResult } from '../config/budget-snapshot.ts'
import type { BudgetState } from '../policies/budgets/snapshot.ts'
import { type Json, type OpenApiPart, responses } from '../resources/api/openapi-part.ts'
import { refusal } from '../resources/change/change.ts'
import type { AdminEndpoint, AdminResult } from './api.ts'

const path = '/api/budgets'
const statusPath = '/api/budgets/status'
const defaultLimit = 100
const maxLimit = 500
const wholeNumber = /^\d{1,4}$/

/** Endpoints of the state of budgets, which explains a refusal. */
export function budgetEndpoints(read: (request: BudgetRequest) => Promise<BudgetResult>): AdminEndpoint[] {
  return [
    {
      path,
      methods: {
        GET: {
          query: ['budget', 'value', 'limit', 'cursor'],
          async respond({ query }): Promise<AdminResult> {
            const limit = readLimit(query.get('limit'))
            if (limit === undefined) return refusal(400, `limit must be a whole number from 1 to ${maxLimit}`)
            const [budget, value, cursor] = ['budget', 'value', 'cursor'].map((name) => query.get(name))
            const result = await read({ kind: 'page', budget, value, limit, cursor })
            const { kind: _, ...page } = result
            return { kind: 'json', value: page }
          },
        },
      },
    },
    {
      path: statusPath,
      methods: {
        GET: {
          query: ['apiKeyName'],
          async respond({ query }): Promise<AdminResult> {
            const { observedAt, budgets } = await read({ kind: 'keys', apiKeyName: query.get('apiKeyName') })
            return {
              kind: 'json',
              value: { observedAt, budgets: budgets.map((budget) => keyStatus(budget, observedAt)) },
            }
          },
        },
      },
    },
  ]
}

function readLimit(text: string | undefined): number | undefined {
  if (text === undefined) return defaultLimit
  const limit = wholeNumber.test(text) ? Number(text) : 0
  return limit >= 1 && limit <= maxLimit ? limit : undefined
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

export const budgetsOpenApi: OpenApiPart = {
  paths: {
    [path]: {
      get: {
        summary: 'State of all budgets by value, those closest to their limit first.',
        parameters: [
          parameter('budget', 'Name of a budget.'),
          parameter('value', 'Value of the key expression.'),
          parameter('limit', 'Budgets per page.', {
            ...{ type: 'integer', minimum: 1, maximum: maxLimit, default: defaultLimit },
          }),
          parameter('cursor', '`nextCursor` of the previous page.'),
        ],
        responses: responses({ type: 'object' }),
      },
    },
    [statusPath]: {
      get: {
        summary: 'State of the budgets of virtual keys.',
        parameters: [parameter('apiKeyName', '`metadata.name` of a virtual key.')],
        responses: responses({ type: 'object' }),
      },
    },
  },
}
