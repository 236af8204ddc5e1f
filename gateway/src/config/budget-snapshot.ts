import type { CompileContext } from '../pipeline/compile-context.ts'
import { idOf } from '../policies/api-key/entry.ts'
import { type ApiKeyRecord, recordDigest } from '../policies/api-key/record.ts'
import { budgetAccounts } from '../policies/budgets/accounts.ts'
import { identityOf } from '../policies/budgets/budget.ts'
import { budgetRule } from '../policies/budgets/config.ts'
import {
  type BudgetPage,
  type BudgetQuery,
  type ConfiguredBudget,
  type KeyBudgetQuery,
  readBudgets,
  readKeyBudgets,
} from '../policies/budgets/snapshot.ts'
import { keyBudgetRule } from '../schema/budget.ts'
import { policyScopes } from './policy-scopes.ts'
import type { Config } from './schema.ts'
import { trafficSections } from './traffic/sections.ts'

/** Reads a page of the budgets of a configuration, or of those of virtual keys. */
export type BudgetRequest =
  | ({ readonly kind: 'page' } & BudgetQuery)
  | ({ readonly kind: 'keys' } & KeyBudgetQuery)

/** Reads the current state of the budgets of a configuration. */
export async function readBudgetsOf(
  config: Config | undefined,
  context: CompileContext,
  request: BudgetRequest,
): Promise<BudgetPage> {
  const accounts = budgetAccounts(context)
  const budgets = config === undefined ? [] : configuredBudgets(config, context)
  const now = context.clock.now()
  return request.kind === 'page'
    ? await readBudgets(accounts, budgets, { query: request, now })
    : await readKeyBudgets(accounts, budgets, { query: request, now })
}

/** Whether requests are charged to a budget of the configuration. */
export function hasBudgets(config: Config): boolean {
  return policyScopes(config, trafficSections(config)).some(
    ({ policies: { budgets = [], apiKey } }) =>
      budgets.length > 0 || apiKey?.keys.some((record) => record.budgets !== undefined) === true,
  )
}

function configuredBudgets(config: Config, { cached }: CompileContext): ConfiguredBudget[] {
  return policyScopes(config, trafficSections(config, cached)).flatMap(({ name: place, policies }) => [
    ...(policies.budgets ?? []).map((budget) => {
      const rule = budgetRule(budget)
      return { identity: identityOf(place, rule), place, rule, key: budget.key, apiKey: undefined }
    }),
    ...(policies.apiKey?.keys ?? []).flatMap(budgetsOfKey),
  ])
}

function budgetsOfKey(record: ApiKeyRecord): ConfiguredBudget[] {
  const { budgets = [], metadata } = record
  const digest = budgets.length === 0 ? undefined : recordDigest(record)
  if (digest === undefined) return []
  const id = idOf(record, digest)
  const name = metadata?.['name']
  const apiKey = { id, name: typeof name === 'string' ? name : undefined }
  return budgets.map((budget) => {
    const rule = keyBudgetRule(budget)
    return { identity: identityOf(`key/${id}`, rule), place: 'key', rule, key: undefined, apiKey }
  })
}
