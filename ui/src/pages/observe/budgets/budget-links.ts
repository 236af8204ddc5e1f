import type { BudgetState } from '../../../api/budgets.ts'

/** Fields of the ledger by the expressions that budgets are kept by. */
const fields: Readonly<Record<string, string>> = {
  'apiKey.id': 'keyId',
  'apiKey.name': 'keyName',
  'apiKey.user': 'user',
  'apiKey.group': 'group',
  'jwt.sub': 'user',
  'jwt.email': 'user',
}

type Links = { readonly usage: string; readonly refused: string; readonly key?: string }

/** Pages about a budget: its usage in the window, its refused requests, and its key. */
export function linksOf({ place, budget, key, value, apiKeyId, limit, window }: BudgetState): Links {
  const who = apiKeyId === undefined ? conditionOf(key, value) : { keyId: apiKeyId }
  const range = {
    from: new Date(window.start).toISOString(),
    to: new Date(Math.min(window.end, Math.ceil(Date.now() / 60_000) * 60_000)).toISOString(),
  }
  const metric = limit.unit === 'USD' ? 'cost' : 'tokens'
  const usage = new URLSearchParams({ ...range, ...who, metric, by: 'servedModel' })
  const refused = new URLSearchParams({ ...range, ...who, refusedBy: `budget: ${place}: ${budget}` })
  return {
    usage: `/usage?${usage}`,
    refused: `/requests?${refused}`,
    ...(apiKeyId === undefined ? {} : { key: `/llm/keys/${encodeURIComponent(apiKeyId)}` }),
  }
}

function conditionOf(key: string | undefined, value: string): Record<string, string> {
  const field = key === undefined ? undefined : fields[key]
  return field === undefined || value === '' ? {} : { [field]: value }
}
