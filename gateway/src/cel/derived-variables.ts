import { clientNetwork } from '../lib/address/client-network.ts'
import type { Node } from './ast.ts'
import { hasProperties, type Variables } from './closures/values.ts'
import { referencesField } from './references.ts'

/**
 * Compiles the derived variables that an expression references, at no cost to other expressions: `now` from
 * `clock`, `source.network` from `source.address`, and members of `request` from its other members and from
 * `body`.
 */
export function compileDerivedVariables(
  node: Node,
  roots: ReadonlySet<string>,
): ((variables: Variables) => Variables) | undefined {
  const members = [...requestMembers].filter(([name]) => referencesField(node, 'request', name))
  const readsBody = referencesField(node, 'request', 'body')
  const readsNow = roots.has('now')
  const readsNetwork = referencesField(node, 'source', 'network')
  if (members.length === 0 && !readsBody && !readsNow && !readsNetwork) return undefined
  return (variables) => {
    const { request, source } = variables
    const derived: Record<string, unknown> = { ...variables }
    if (readsNow) derived['now'] = timeOf(variables['clock'])
    if (readsNetwork && hasProperties(source) && typeof source['address'] === 'string')
      derived['source'] = { ...source, network: clientNetwork(source['address']) }
    if (hasProperties(request)) {
      const made = members.map(([name, make]) => [name, make(request)])
      const body = readsBody ? { body: variables['body'] } : undefined
      derived['request'] = { ...Object.fromEntries(made), ...body, ...request }
    }
    return derived
  }
}

const requestMembers: ReadonlyMap<string, (request: Variables) => unknown> = new Map<
  string,
  (request: Variables) => unknown
>([
  ['pathAndQuery', ({ path, query }) => `${path}${query}`],
  ['uri', ({ scheme, host, path, query }) => `${scheme}://${host}${path}${query}`],
  ['startTime', ({ arrivedAt }) => (typeof arrivedAt === 'number' ? new Date(arrivedAt) : undefined)],
])

function timeOf(clock: unknown): Date | undefined {
  return isClock(clock) ? new Date(clock.now()) : undefined
}

function isClock(value: unknown): value is { now(): number } {
  return hasProperties(value) && typeof value['now'] === 'function'
}
