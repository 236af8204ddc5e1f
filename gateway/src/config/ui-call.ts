import type { RequestFacts } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'

/** Operations whose method is not GET although they change nothing. */
const readOperations: ReadonlySet<string> = new Set([
  '/api/cel/check',
  '/api/cel/evaluate',
  '/api/guards/test',
  '/api/logs/analytics/summary',
  '/api/logs/get',
  '/api/logs/search',
  '/api/logs/tail',
  '/api/mcp/visible',
  '/api/routes/explain',
])

/** Requests to the gateway's own listeners, whose policies decide on them. */
const forwardPrefix = '/api/forward/'

/** Documents with secrets in clear. */
const secretPaths: ReadonlySet<string> = new Set(['/api/config/file'])

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a call of the admin API changes something, or returns secrets in clear: `ui.change` of rules. */
export function isUiChange({
  method,
  path,
  query,
}: Pick<RequestFacts, 'method' | 'path' | 'query'>): boolean {
  const parameters = new URLSearchParams(query)
  // A test of guards may connect to destinations that the configuration does not have.
  if (readOperations.has(path)) return parameters.has('newTargets')
  if (!safeMethods.has(method)) return !path.startsWith(forwardPrefix)
  return secretPaths.has(path) || parameters.has('reveal')
}

/** Records the effect of a call before the policies of a `ui` gateway. */
export const uiCall: Policy = {
  name: 'ui call',
  onRequest({ facts }) {
    facts.ui = { change: isUiChange(facts.request) }
    return undefined
  },
}
