import type { RequestFacts } from '../../../pipeline/exchange.ts'
import {
  type ExplanationLimits,
  explainRoute,
  type RouteCandidate,
} from '../../../pipeline/routing/explain-route.ts'
import type { RouteTable } from '../../../pipeline/routing/route-table.ts'
import type { Route } from '../../../pipeline/snapshot.ts'

/**
 * Lists the routes that could receive a request. Routes of a group take the place of the selected route that
 * refers to the group, if one of them is selected.
 */
export function explainDelegated(
  table: RouteTable<Route>,
  request: RequestFacts,
  limits?: ExplanationLimits,
): readonly RouteCandidate<Route>[] {
  const candidates = explainRoute(table, request, limits)
  const selected = candidates.find(({ result }) => result.kind === 'selected')
  const delegated = selected?.target.delegation?.explain(request, limits) ?? []
  if (!delegated.some(({ result }) => result.kind === 'selected')) return [...candidates, ...delegated]
  return [...delegated, ...candidates.filter((candidate) => candidate !== selected)]
}
