import type { YieldPoint } from '../../../lib/scheduling/yielding.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { MatchedRoute, RequestFacts } from '../../../pipeline/exchange.ts'
import { attachedHostnames } from '../../../pipeline/routing/hostnames.ts'
import type { RouteMatch } from '../../../pipeline/routing/route-match.ts'
import { createRouteTableBuilder } from '../../../pipeline/routing/route-table.ts'
import type { Delegation, Route } from '../../../pipeline/snapshot.ts'
import type { PolicyScope } from '../../../policies/registry/scope.ts'
import { chooseWeighted } from '../../../upstream/weighted-choice.ts'
import { noRoute, plainRoute } from '../compile-gateway.ts'
import { compileRoute, type RouteSurroundings } from '../compile-route.ts'
import { jointNode } from '../joint-node.ts'
import type { RouteConfig, RouteGroupConfig } from '../route-config.ts'
import { nameOfRoute } from '../route-kind.ts'
import { explainDelegated } from './explain-delegated.ts'

/** Longest chain of groups. */
export const maxGroupDepth = 8

/** A compiled route, or a route that delegates to groups. */
export type CompiledNode = {
  behind(scopes: readonly PolicyScope[]): Route | Promise<Route>
  /** Closes resources that outlive requests, by name of the route. */
  readonly stops: readonly (readonly [name: string, stop: () => Promise<void>])[]
}

export type GroupSurroundings = RouteSurroundings & {
  readonly yieldPoint: YieldPoint
  matchesOf(route: RouteConfig): readonly RouteMatch[]
}

/** Whether a route delegates its requests to route groups. */
export function delegates({ backends = [] }: RouteConfig): boolean {
  return backends.some(({ routeGroup }) => routeGroup !== undefined)
}

export function findGroup(
  name: string | undefined,
  groups: readonly RouteGroupConfig[],
): RouteGroupConfig | undefined {
  return groups.find((group) => group.name === name)
}

/**
 * The route of a group behind a route that refers to it: with the gateways and policies of that route, of
 * which its own take precedence. The same object while both are unchanged.
 */
function routeBehindParent(
  child: Omit<RouteConfig, 'gateways'>,
  at: { readonly parent: RouteConfig; readonly name: string },
  context: Pick<CompileContext, 'cached'>,
): RouteConfig {
  const { parent, name } = at
  const node = jointNode(child, parent.policies === undefined ? [] : [parent.policies], context)
  const purpose = `route ${name} of ${JSON.stringify(parent.gateways ?? '')}`
  return context.cached(node, purpose, () => ({
    ...child,
    name,
    ...(parent.gateways === undefined ? {} : { gateways: parent.gateways }),
    ...(parent.policies === undefined ? {} : { policies: { ...parent.policies, ...child.policies } }),
  }))
}

/** Compiles a route and the routes of its groups. */
export async function compileNode(
  route: RouteConfig,
  index: number,
  surroundings: GroupSurroundings,
): Promise<CompiledNode> {
  if (delegates(route)) return compileDelegating(route, nameOfRoute(route, index), surroundings)
  const { behind, stop } = compileRoute(route, index, surroundings)
  return { behind, stops: stop === undefined ? [] : [[nameOfRoute(route, index), stop]] }
}

type Child = { readonly route: RouteConfig; readonly node: CompiledNode }

async function compileDelegating(
  parent: RouteConfig,
  name: string,
  surroundings: GroupSurroundings,
): Promise<CompiledNode> {
  const groups: { weight: number; children: Child[] }[] = []
  for (const { routeGroup, weight = 1 } of parent.backends ?? []) {
    const group = findGroup(routeGroup, surroundings.sections.routeGroups)
    if (group === undefined) throw new Error(`no route group is named "${routeGroup}"`)
    const children: Child[] = []
    for (const [index, child] of group.routes.entries()) {
      const childName = `${name}/${child.name ?? `${group.name}-${index}`}`
      const route = routeBehindParent(child, { parent, name: childName }, surroundings.context)
      children.push({ route, node: await compileNode(route, index, surroundings) })
      const pause = surroundings.yieldPoint()
      if (pause) await pause
    }
    groups.push({ weight, children })
  }
  const policies: PolicyScope[] =
    parent.policies === undefined ? [] : [{ name: `route ${name}`, policies: parent.policies }]
  return {
    stops: groups.flatMap(({ children }) => children.flatMap(({ node }) => node.stops)),
    async behind(scopes) {
      const { context, maxBufferSize } = surroundings
      const missing = noRoute([...scopes, ...policies], maxBufferSize, context)
      const named = { ...missing, target: { ...missing.target, name, meter: context.metrics.route(name) } }
      const choices = []
      for (const { weight, children } of groups) {
        choices.push({
          weight,
          delegation: await compileDelegation(children, scopes, { ...surroundings, missing: named }),
        })
      }
      const delegation = chooseBetween(choices, context)
      return { ...plainRoute(name, missing.target.policies, missing.target.backend, context), delegation }
    },
  }
}

/** Compiles the table of a group behind the policies of a listener. */
async function compileDelegation(
  children: readonly Child[],
  scopes: readonly PolicyScope[],
  { context, yieldPoint, matchesOf, missing }: GroupSurroundings & { missing: MatchedRoute<Route> },
): Promise<Delegation> {
  const [{ hostname, listener } = { hostname: undefined, listener: undefined }] = scopes
  const builder = createRouteTableBuilder<Route>((match, compile) =>
    context.cached(match, 'route match', compile),
  )
  for (const { route, node } of children) {
    const hostnames = attachedHostnames(hostname, route.hostnames ?? [])
    if (hostnames === undefined) continue
    const made = node.behind(scopes)
    const compiled = made instanceof Promise ? await made : made
    const target = context.cached(compiled, `route of ${listener}`, () => ({ ...compiled, listener }))
    builder.add({ hostnames, matches: matchesOf(route), target })
    const pause = yieldPoint()
    if (pause) await pause
  }
  const find = builder.build()
  return {
    find(request) {
      const found = find(request) ?? missing
      return found.target.delegation?.find(request) ?? found
    },
    explain: (request, limits) => explainDelegated(builder.table, request, limits),
  }
}

type Choice = { readonly weight: number; readonly delegation: Delegation }

function chooseBetween(choices: readonly Choice[], { random }: CompileContext): Delegation {
  const [only] = choices
  if (only !== undefined && choices.length === 1) return only.delegation
  const first = choices.find(({ weight }) => weight > 0) ?? only
  if (first === undefined) throw new Error('a route with route groups has no group')
  const fallback = first
  // Other readings of the path of a request belong to the same group as the request.
  const chosen = new WeakMap<object, Delegation>()
  function choose({ headers }: RequestFacts): Delegation {
    const known = chosen.get(headers)
    if (known !== undefined) return known
    const { delegation } = chooseWeighted(choices, random()) ?? fallback
    chosen.set(headers, delegation)
    return delegation
  }
  return {
    find: (request) => choose(request).find(request),
    explain: (request, limits) => choices.flatMap(({ delegation }) => delegation.explain(request, limits)),
  }
}
