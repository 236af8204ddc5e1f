import { checkRegexMatches } from '../../../pipeline/routing/route-table.ts'
import { checkRoutePolicies } from '../../../policies/registry/check.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { noDynamicTunnel } from '../../../upstream/dynamic.ts'
import { routeMatchOf } from '../compile-route-match.ts'
import type { RouteConfig } from '../route-config.ts'
import { kindOfRoute } from '../route-kind.ts'
import type { TrafficSections } from '../sections.ts'
import { delegates, findGroup, maxGroupDepth } from './route-groups.ts'

/** Policies with paths of their own, which are outside of the prefix of a route with groups. */
const policiesWithPaths = ['oidc', 'mcpAuthentication'] as const

/** Checks a route that refers to route groups, at any place. */
export function checkDelegating(route: RouteConfig, sections: TrafficSections, report: ReportIssue): void {
  const { backends = [], matches = [], policies = {} } = route
  backends.forEach(({ routeGroup, policies: ofBackend }, index) => {
    if (routeGroup === undefined) {
      report(['backends', index], 'must be a routeGroup, because another backend of the route is one')
      return
    }
    if (ofBackend !== undefined) report(['backends', index, 'policies'], 'is not valid for a routeGroup')
    const group = findGroup(routeGroup, sections.routeGroups)
    if (group === undefined)
      report(['backends', index, 'routeGroup'], `no route group is named "${routeGroup}"`)
    for (const child of group?.routes ?? []) {
      const kind = kindOfRoute(child, sections.backends)
      const merged = { ...policies, ...child.policies }
      // Policies of HTTP routes are valid there, and each part has its own check.
      if (kind !== 'http' && route.policies !== undefined)
        checkRoutePolicies(merged, kind, (path, message) =>
          report(['policies', ...path], `for routes of ${routeGroup}: ${message}`),
        )
    }
  })
  matches.forEach(({ path }, index) => {
    if (path !== undefined && path.pathPrefix === undefined)
      report(['matches', index, 'path'], 'must be a pathPrefix, because the route refers to a routeGroup')
  })
  reportPoliciesWithPaths(route, 'refers to a routeGroup', report)
  checkInheritedAuth(route, sections, report)
}

const allHosts = 'must not be set on a dynamic backend of all hosts: set hostnames on the route'

/** The gateway's credential must not go to any host that a client names. */
export function checkDynamicAuth(
  { hostnames = [], policies, backends = [] }: Omit<RouteConfig, 'gateways'>,
  report: ReportIssue,
): void {
  backends.forEach((backend, index) => {
    if (backend.dynamic !== undefined && policies?.backendTunnel !== undefined)
      report(['policies', 'backendTunnel'], noDynamicTunnel)
    if (hostnames.length > 0 || !isOfAllHosts(backend)) return
    if (backend.policies?.backendAuth !== undefined)
      report(['backends', index, 'policies', 'backendAuth'], allHosts)
    else if (policies?.backendAuth !== undefined) report(['policies', 'backendAuth'], allHosts)
  })
}

function isOfAllHosts({ dynamic }: NonNullable<RouteConfig['backends']>[number]): boolean {
  return dynamic !== undefined && dynamic.target === undefined
}

/** Checks the routes of groups, at any depth, that inherit `backendAuth`. */
function checkInheritedAuth(
  { hostnames = [], policies, backends = [] }: RouteConfig,
  { routeGroups }: TrafficSections,
  report: ReportIssue,
): void {
  if (policies?.backendAuth === undefined || hostnames.length > 0) return
  const groupsOf = (of: RouteConfig['backends'] = []) => of.map(({ routeGroup }) => routeGroup)
  const names = new Set(groupsOf(backends))
  for (const name of names) {
    for (const child of findGroup(name, routeGroups)?.routes ?? []) {
      const inherits = child.policies?.backendAuth === undefined && (child.hostnames ?? []).length === 0
      if (!inherits) continue
      for (const group of groupsOf(child.backends)) names.add(group)
      const isExposed = (child.backends ?? []).some(
        (backend) => isOfAllHosts(backend) && backend.policies?.backendAuth === undefined,
      )
      if (isExposed) report(['policies', 'backendAuth'], `for routes of ${name}: ${allHosts}`)
    }
  }
}

function reportPoliciesWithPaths(
  { policies = {} }: Omit<RouteConfig, 'gateways'>,
  reason: string,
  report: ReportIssue,
) {
  for (const name of policiesWithPaths) {
    if (policies[name] !== undefined)
      report(
        ['policies', name],
        `is not valid on a route that ${reason}: set it on a gateway or another route`,
      )
  }
}

/** Checks the groups: names, cycles, and the routes of each group once. */
export function checkRouteGroups(
  sections: TrafficSections,
  checkChild: (route: RouteConfig, report: ReportIssue) => void,
  report: ReportIssue,
): void {
  const { routeGroups } = sections
  let hasNoCycles = true
  routeGroups.forEach(({ name, routes }, index) => {
    const at: ReportIssue = (path, message) => report([index, ...path], message)
    if (findGroup(name, routeGroups) !== routeGroups[index])
      at(['name'], `another route group is named "${name}"`)
    const chain = chainOf(name, sections)
    if (chain !== undefined) at([], chain)
    hasNoCycles &&= chain === undefined
    const names = new Set<string>()
    routes.forEach((route, position) => {
      const atRoute: ReportIssue = (path, message) => at(['routes', position, ...path], message)
      if (route.name !== undefined && names.has(route.name))
        atRoute(['name'], `another route is named "${route.name}"`)
      if (route.name !== undefined) names.add(route.name)
      checkChild(route, atRoute)
      reportPoliciesWithPaths(route, 'belongs to a route group', atRoute)
    })
    const entries = routes.map(({ hostnames = [], matches = [] }) => ({
      hostnames,
      matches: matches.filter(({ path }) => path?.regex !== undefined).map(routeMatchOf),
    }))
    checkRegexMatches(entries, (position, message) => at(['routes', position, 'matches'], message))
  })
  if (hasNoCycles) checkSize(sections, report)
}

/** Limit of the routes of groups, counted for each route that refers to them. */
const maxDelegatedRoutes = 100_000

/** Reports groups that multiply: each route that refers to a group compiles all routes of the group. */
function checkSize({ routes, routeGroups }: TrafficSections, report: ReportIssue): void {
  const sizes = new Map<string, number>()
  const sizeOf = (route: Omit<RouteConfig, 'gateways'>): number =>
    (route.backends ?? []).reduce(
      (sum, { routeGroup }) => sum + (routeGroup === undefined ? 0 : groupSize(routeGroup)),
      1,
    )
  function groupSize(name: string): number {
    const known = sizes.get(name)
    if (known !== undefined) return known
    const size = findGroup(name, routeGroups)?.routes.reduce((sum, route) => sum + sizeOf(route), 0) ?? 0
    sizes.set(name, size)
    return size
  }
  const total = routes.reduce((sum, route) => sum + sizeOf(route) - 1, 0)
  if (total > maxDelegatedRoutes)
    report(
      [],
      `must have at most ${maxDelegatedRoutes} routes, counted for each route that refers to a group`,
    )
}

/** The mistake of a chain of groups: a cycle, or too many levels. */
function chainOf(start: string, { routeGroups }: TrafficSections): string | undefined {
  let level = new Set([start])
  for (let depth = 1; level.size > 0; depth += 1) {
    const next = new Set<string>()
    for (const name of level) {
      for (const route of findGroup(name, routeGroups)?.routes ?? []) {
        if (!delegates(route)) continue
        for (const { routeGroup } of route.backends ?? []) if (routeGroup !== undefined) next.add(routeGroup)
      }
    }
    if (next.has(start)) return `must not refer to itself, not through other groups either: ${start}`
    if (depth > maxGroupDepth) return `must not refer to more than ${maxGroupDepth} groups in a chain`
    level = next
  }
  return undefined
}
