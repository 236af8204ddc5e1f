import { routeMatchOf } from '../../../../config/traffic/compile-route-match.ts'
import type { RouteMatchConfig } from '../../../../config/traffic/route-config.ts'
import { compilePattern } from '../../../../lib/pattern.ts'
import { checkMatch } from '../../../../pipeline/routing/route-match.ts'
import { formatPath } from '../../../../schema/path.ts'
import type { GrpcRouteRule, HttpRouteMatch, ValueMatch } from '../../../objects/gateway-api.ts'
import type { RuleContext } from './rule-plan.ts'

type ReportMatch = RuleContext['report']
type ConfigValueMatch = NonNullable<RouteMatchConfig['headers']>[number]
type GrpcRouteMatch = NonNullable<GrpcRouteRule['matches']>[number]

/** Methods of the Gateway API. */
const methods: ReadonlySet<string> = new Set([
  ...['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'],
])

/** Translates the valid matches of an HTTPRoute rule; undefined matches all requests. */
export function httpMatches(
  matches: readonly HttpRouteMatch[] | undefined,
  report: ReportMatch,
): readonly RouteMatchConfig[] | undefined {
  return translate(matches, httpMatch, report)
}

/** Translates the valid matches of a GRPCRoute rule; undefined matches all requests. */
export function grpcMatches(
  matches: readonly GrpcRouteMatch[] | undefined,
  report: ReportMatch,
): readonly RouteMatchConfig[] | undefined {
  return translate(matches, grpcMatch, report)
}

function translate<Match>(
  matches: readonly Match[] | undefined,
  translateOne: (match: Match, report: ReportMatch) => RouteMatchConfig,
  report: ReportMatch,
): readonly RouteMatchConfig[] | undefined {
  if (matches === undefined || matches.length === 0) return undefined
  const translated = matches.map((match, index) => {
    let isValid = true
    const reportHere: ReportMatch = (at, message) => {
      isValid = false
      report(`matches[${index}]${at}`, message)
    }
    const one = translateOne(match, reportHere)
    if (isValid) {
      checkMatch(routeMatchOf(one), (path, message) => reportHere(`.${formatPath(path)}`, message))
    }
    return isValid ? one : undefined
  })
  return withoutUndefined(translated)
}

/** The list itself if it has no undefined items: `filter` allocates more than the list needs. */
function withoutUndefined<Item>(items: readonly (Item | undefined)[]): readonly Item[] {
  const isComplete = (list: readonly (Item | undefined)[]): list is readonly Item[] =>
    !list.includes(undefined)
  return isComplete(items) ? items : items.filter((item) => item !== undefined)
}

function httpMatch(
  { path, headers, queryParams, method }: HttpRouteMatch,
  report: ReportMatch,
): RouteMatchConfig {
  if (method !== undefined && !methods.has(method)) {
    report('.method', `must be one of ${[...methods].join(', ')}, got "${method}"`)
  }
  return {
    ...(path === undefined ? {} : { path: httpPath(path, report) }),
    ...(method === undefined ? {} : { method }),
    ...valuesOf('headers', 'headers', headers, report),
    ...valuesOf('query', 'queryParams', queryParams, report),
  }
}

function httpPath(
  { type = 'PathPrefix', value = '/' }: NonNullable<HttpRouteMatch['path']>,
  report: ReportMatch,
): RouteMatchConfig['path'] {
  switch (type) {
    case 'Exact':
      return { exact: value }
    case 'PathPrefix':
      return { pathPrefix: value }
    case 'RegularExpression':
      return { regex: value }
    default:
      report('.path.type', `must be Exact, PathPrefix or RegularExpression, got "${type}"`)
      return undefined
  }
}

/**
 * Conditions on headers or query parameters. Of several with one name, only the first counts (Gateway API,
 * `HTTPHeaderMatch.name`); names of headers have no case.
 */
function valuesOf(
  key: 'headers' | 'query',
  field: 'headers' | 'queryParams',
  values: readonly ValueMatch[] | undefined,
  report: ReportMatch,
): Pick<RouteMatchConfig, 'headers' | 'query'> {
  if (values === undefined || values.length === 0) return {}
  const seen = new Set<string>()
  const translated = values.flatMap(({ name, type = 'Exact', value }, index): ConfigValueMatch[] => {
    const identity = field === 'headers' ? name.toLowerCase() : name
    if (seen.has(identity)) return []
    seen.add(identity)
    switch (type) {
      case 'Exact':
        return [{ name, value: { exact: value } }]
      case 'RegularExpression':
        return [{ name, value: { regex: value } }]
      default:
        report(`.${field}[${index}].type`, notExactOrPattern(type))
        return []
    }
  })
  return { [key]: translated }
}

function notExactOrPattern(type: string): string {
  return `must be Exact or RegularExpression, got "${type}"`
}

function grpcMatch({ method, headers }: GrpcRouteMatch, report: ReportMatch): RouteMatchConfig {
  const path = method === undefined ? undefined : grpcPath(method, report)
  return { ...(path === undefined ? {} : { path }), ...valuesOf('headers', 'headers', headers, report) }
}

const serviceForm = /^\.?[a-z_][a-z_0-9]*(?:\.[a-z_][a-z_0-9]*)*$/i
const methodForm = /^[a-z_][a-z_0-9]*$/i
const anySegment = '[^/]+'

/**
 * The path of a gRPC request is `/<service>/<method>`. Precedence has the longest service, then the longest
 * method: a whole path precedes a prefix, and a method of any service ranks below every service.
 */
function grpcPath(
  { type = 'Exact', service = '', method = '' }: NonNullable<GrpcRouteMatch['method']>,
  report: ReportMatch,
): RouteMatchConfig['path'] {
  if (service === '' && method === '') return undefined
  if (type === 'RegularExpression') {
    // Each alone, because `a)|(b` is valid only inside a group.
    for (const [field, pattern] of Object.entries({ service, method })) {
      const compiled = compilePattern(pattern)
      if (!compiled.ok) report(`.method.${field}`, compiled.message)
    }
    const [first, second] = [service, method].map((text) => (text === '' ? anySegment : `(?:${text})`))
    return { regex: `/${first}/${second}`, rank: rankOf(service) }
  }
  if (type !== 'Exact') {
    report('.method.type', notExactOrPattern(type))
    return undefined
  }
  if (service !== '' && !serviceForm.test(service)) {
    report('.method.service', `"${service}" is not the name of a gRPC service`)
  }
  if (method !== '' && !methodForm.test(method)) {
    report('.method.method', `"${method}" is not the name of a gRPC method`)
  }
  if (service === '') return { regex: `/${anySegment}/${method}`, rank: rankOf(service) }
  return method === '' ? { pathPrefix: `/${service}` } : { exact: `/${service}/${method}` }
}

/** The rank of a pattern among prefixes: that of a service of the same length, and above all requests. */
function rankOf(service: string): number {
  return Math.max(service.length + 1, 2)
}
