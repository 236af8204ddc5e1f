import type { MirrorConfig } from '../../../../backends/http/config.ts'
import type { HttpHeaderFilter, PathModifier, RouteFilter } from '../../../objects/gateway-api.ts'
import type { RoutePolicies, RuleContext } from './rule-plan.ts'

/** Filters of a rule as policies. */
export type FilterPolicies = {
  readonly policies: RoutePolicies
  readonly redirectsToListenerPort: boolean
  /** Names of the backends of mirrors. */
  readonly names: readonly string[]
}

type FilterType = (typeof typesOf)['HTTPRoute'][number]

const headerTypes = ['RequestHeaderModifier', 'ResponseHeaderModifier'] as const
const grpcTypes = [...headerTypes, 'RequestMirror'] as const

/** Supported types of filters of a rule. */
const typesOf = {
  HTTPRoute: [...grpcTypes, 'RequestRedirect', 'URLRewrite', 'CORS'],
  GRPCRoute: grpcTypes,
} as const

const fieldOf = {
  RequestHeaderModifier: 'requestHeaderModifier',
  ResponseHeaderModifier: 'responseHeaderModifier',
  RequestMirror: 'requestMirror',
  RequestRedirect: 'requestRedirect',
  URLRewrite: 'urlRewrite',
  CORS: 'cors',
} as const satisfies Record<FilterType, keyof RouteFilter>

/** Seconds; the default of the API. */
const defaultMaxAge = 5

/** Translates the filters of a rule. */
export function translateFilters(
  kind: 'HTTPRoute' | 'GRPCRoute',
  filters: readonly RouteFilter[] | undefined,
  context: RuleContext,
): FilterPolicies {
  const supported = supportedFilters(typesOf[kind], filters, 'filters', context.report)
  const find = (type: FilterType) => supported.find(({ filter }) => filter.type === type)?.filter
  const redirect = find('RequestRedirect')?.requestRedirect
  const rewrite = find('URLRewrite')?.urlRewrite
  if (redirect !== undefined && rewrite !== undefined) {
    context.report('filters', 'RequestRedirect excludes URLRewrite', 'IncompatibleFilters')
  }
  const request = find('RequestHeaderModifier')?.requestHeaderModifier
  const response = find('ResponseHeaderModifier')?.responseHeaderModifier
  const cors = find('CORS')?.cors
  const mirrors = translateMirrors(supported, context)
  return {
    policies: {
      ...(cors && { cors: corsOf(cors) }),
      ...(request && { requestHeaderModifier: headerModifierOf(request) }),
      ...(response && { responseHeaderModifier: headerModifierOf(response) }),
      ...(mirrors.length > 0 && { requestMirror: mirrors.map(({ mirror }) => mirror) }),
      ...(redirect && { requestRedirect: redirectOf(redirect, context.report) }),
      ...(rewrite && { urlRewrite: rewriteOf(rewrite, context.report) }),
    },
    redirectsToListenerPort: redirect !== undefined && (redirect.port ?? redirect.scheme) === undefined,
    names: mirrors.map(({ name }) => name),
  }
}

/** Translates the filters of a backend of a rule. */
export function translateBackendFilters(
  filters: readonly RouteFilter[] | undefined,
  at: string,
  report: RuleContext['report'],
): Pick<RoutePolicies, 'requestHeaderModifier' | 'responseHeaderModifier'> {
  const supported = supportedFilters(headerTypes, filters, at, report).map(({ filter }) => filter)
  const request = supported.find(({ requestHeaderModifier }) => requestHeaderModifier)?.requestHeaderModifier
  const response = supported.find(
    ({ responseHeaderModifier }) => responseHeaderModifier,
  )?.responseHeaderModifier
  return {
    ...(request && { requestHeaderModifier: headerModifierOf(request) }),
    ...(response && { responseHeaderModifier: headerModifierOf(response) }),
  }
}

/** A filter with its path below the rule. */
type PlacedFilter = { readonly filter: RouteFilter; readonly at: string }

/** The filters of supported types. A filter is never ignored: each other one is a mistake. */
function supportedFilters(
  types: readonly FilterType[],
  filters: readonly RouteFilter[] = [],
  place: string,
  report: RuleContext['report'],
): PlacedFilter[] {
  const seen = new Set<string>()
  return filters.flatMap((filter, index) => {
    const at = `${place}[${index}]`
    const type = types.find((one) => one === filter.type)
    if (type === undefined) {
      report(`${at}.type`, `must be one of ${types.join(', ')}, got "${filter.type}"`)
      return []
    }
    const field = fieldOf[type]
    if (filter[field] === undefined) report(`${at}.${field}`, `must be set for ${type}`)
    if (seen.has(type) && type !== 'RequestMirror') {
      report(at, `${type} must not be repeated`, 'IncompatibleFilters')
    }
    seen.add(type)
    return [{ filter, at }]
  })
}

function translateMirrors(
  filters: readonly PlacedFilter[],
  { resolve, report }: RuleContext,
): readonly { readonly name: string; readonly mirror: MirrorConfig }[] {
  return filters.flatMap(({ filter: { requestMirror }, at }) => {
    if (requestMirror === undefined) return []
    const { backendRef, percent, fraction } = requestMirror
    const resolved = resolve(backendRef, `${at}.requestMirror.backendRef`)
    // The Gateway API requires that an invalid mirror is dropped and reported (HTTPRequestMirrorFilter).
    if (resolved.kind === 'unresolved') return []
    const { name, traffic } = resolved
    if (traffic !== 'http') report(`${at}.requestMirror.backendRef`, 'must refer to HTTP servers')
    const { numerator, denominator = 100 } = fraction ?? { numerator: percent }
    const share = numerator === undefined ? {} : { percentage: numerator / denominator }
    return [{ name, mirror: { backend: { backend: `/${name}` }, ...share } }]
  })
}

/** Of several values for one name, only the first counts (Gateway API, `HTTPHeader.name`). */
function headerModifierOf({ add, set, remove }: HttpHeaderFilter) {
  return {
    ...(add && add.length > 0 && { add: valuesByName(add) }),
    ...(set && set.length > 0 && { set: valuesByName(set) }),
    ...(remove && remove.length > 0 && { remove: [...remove] }),
  }
}

function valuesByName(headers: readonly { readonly name: string; readonly value: string }[]) {
  const seen = new Set<string>()
  const entries: [string, string][] = []
  for (const { name, value } of headers) {
    const lower = name.toLowerCase()
    if (seen.has(lower)) continue
    seen.add(lower)
    entries.push([name, value])
  }
  return Object.fromEntries(entries)
}

function corsOf({ allowOrigins, allowMethods, allowHeaders, exposeHeaders, ...rest }: Cors) {
  const { allowCredentials, maxAge = defaultMaxAge } = rest
  return {
    ...(allowOrigins && { allowOrigins: [...allowOrigins] }),
    ...(allowMethods && { allowMethods: [...allowMethods] }),
    ...(allowHeaders && { allowHeaders: [...allowHeaders] }),
    ...(exposeHeaders && { exposeHeaders: [...exposeHeaders] }),
    ...(allowCredentials === undefined ? {} : { allowCredentials }),
    maxAge: `${maxAge}s`,
  }
}

type Cors = NonNullable<RouteFilter['cors']>
type Redirect = NonNullable<RouteFilter['requestRedirect']>
type Rewrite = NonNullable<RouteFilter['urlRewrite']>

function redirectOf(
  { scheme, hostname, port, path, statusCode }: Redirect,
  report: RuleContext['report'],
): NonNullable<RoutePolicies['requestRedirect']> {
  const isKnown = scheme === undefined || scheme === 'http' || scheme === 'https'
  if (!isKnown) report('filters', `requestRedirect.scheme must be http or https, got "${scheme}"`)
  const authority = redirectAuthority(hostname, port)
  return {
    ...(isKnown && scheme !== undefined ? { scheme } : {}),
    ...(authority && { authority }),
    ...(path && { path: pathChangeOf(path, 'requestRedirect', report) }),
    // Also without other changes: a redirect to the same address.
    status: statusCode ?? defaultRedirectStatus,
  }
}

const defaultRedirectStatus = 302

/** The target of a redirect by hostname and port. */
export function redirectAuthority(hostname: string | undefined, port: number | undefined) {
  if (hostname === undefined) return port === undefined ? undefined : { port }
  return port === undefined ? { host: hostname } : { full: `${hostname}:${port}` }
}

function rewriteOf(
  { hostname, path }: Rewrite,
  report: RuleContext['report'],
): NonNullable<RoutePolicies['urlRewrite']> {
  return {
    authority: hostname === undefined ? 'none' : { host: hostname },
    ...(path && { path: pathChangeOf(path, 'urlRewrite', report) }),
  }
}

function pathChangeOf(
  { type, replaceFullPath, replacePrefixMatch }: PathModifier,
  filter: string,
  report: RuleContext['report'],
) {
  if (type === 'ReplaceFullPath') return { full: replaceFullPath ?? '/' }
  if (type === 'ReplacePrefixMatch') return { prefix: replacePrefixMatch ?? '' }
  report('filters', `${filter}.path.type must be ReplaceFullPath or ReplacePrefixMatch, got "${type}"`)
  return { full: '/' }
}
