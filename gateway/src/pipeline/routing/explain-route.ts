import { type RequestFacts, sentPath } from '../exchange.ts'
import { anyHost, normaliseHost } from './hostnames.ts'
import { parseQuery } from './query-parameters.ts'
import { type Conditions, headerValue, maxPatternText, type RouteMatch } from './route-match.ts'
import { type Candidate, compareConditions, type PathTable, type RouteTable, rankOf } from './route-table.ts'

/** Condition of a match. `name` is the configured method, header or query parameter. */
export type RouteCondition = {
  readonly condition: 'hostname' | 'path' | 'method' | 'header' | 'query'
  readonly name: string | undefined
}

/** A match of a route, and the reason for its selection or rejection. */
export type RouteCandidate<T> = {
  readonly target: T
  /** As configured: exact, `*.example.com`, `*`. */
  readonly hostname: string
  readonly path: RouteMatch['path']
  readonly result:
    | { readonly kind: 'selected' }
    /** All conditions are true, but the selected match is more specific in this respect. */
    | { readonly kind: 'outranked'; readonly by: 'hostname' | 'path' | 'conditions' | 'order' }
    /** The first condition that is false. */
    | ({ readonly kind: 'failed' } & RouteCondition)
}

/** Limits of an explanation. */
export type ExplanationLimits = {
  /** Listed candidates. */
  readonly most: number
  /** Examined matches with another path. */
  readonly paths: number
  /** Examined other hosts. Each may have `maxRegexMatches`. */
  readonly hosts: number
}

/** Limits of explanations on the request path, for less than 50 us. */
const defaultLimits: ExplanationLimits = { most: 10, paths: 100, hosts: 10 }

/**
 * Lists the matches that could receive a request, the best first, with the first condition that failed.
 * Matches with the host and path of the request precede those with another path, then with another host. The
 * selected match is always listed.
 */
export function explainRoute<T>(
  table: RouteTable<T>,
  request: RequestFacts,
  limits: ExplanationLimits = defaultLimits,
): RouteCandidate<T>[] {
  const { most } = limits
  const listed: RouteCandidate<T>[] = []
  const hosts = hostsOf(table, normaliseHost(request.host))
  let selected: Selected<T> | undefined
  for (const { hostname, paths } of hosts.matching) {
    for (const candidate of candidatesOfPath(paths, request)) {
      if (selected !== undefined && listed.length >= most - 1) break
      const failed = failedCondition(candidate, request)
      const found = describe(candidate, hostname, failed ?? resultOf({ candidate, hostname }, selected))
      if (failed === undefined) selected ??= { candidate, hostname }
      // The last place is for the selected match.
      if (listed.length < most - 1 || (found.result.kind === 'selected' && listed.length < most))
        listed.push(found)
    }
  }
  if (listed.length < most) listed.push(...otherPaths(hosts.matching, request, limits.paths))
  if (listed.length < most) listed.push(...otherHosts(hosts.others, request, limits.hosts))
  return listed.slice(0, most)
}

type Host<T> = { readonly hostname: string; readonly paths: PathTable<T> }
type Selected<T> = { readonly candidate: Candidate<T>; readonly hostname: string }
type Hosts<T> = { readonly matching: readonly Host<T>[]; readonly others: Iterable<Host<T>> }

/** Splits a table by host; the matching ones in order of specificity. */
function hostsOf<T>({ exact, wildcards, any }: RouteTable<T>, host: string): Hosts<T> {
  const matching: Host<T>[] = []
  const own = exact.get(host)
  if (own !== undefined) matching.push({ hostname: host, paths: own })
  for (let dot = host.indexOf('.', 1); dot > 0; dot = host.indexOf('.', dot + 1)) {
    const paths = wildcards.get(host.slice(dot))
    if (paths !== undefined) matching.push({ hostname: `*${host.slice(dot)}`, paths })
  }
  if (any !== undefined) matching.push({ hostname: anyHost, paths: any })
  const known = new Set(matching.map(({ paths }) => paths))
  return { matching, others: unmatched() }

  function* unmatched(): Generator<Host<T>> {
    for (const [hostname, paths] of exact) if (!known.has(paths)) yield { hostname, paths }
    for (const [suffix, paths] of wildcards) if (!known.has(paths)) yield { hostname: `*${suffix}`, paths }
  }
}

/** The candidates with the path of a request, in the order in which the router evaluates them. */
function candidatesOfPath<T>(paths: PathTable<T>, request: RequestFacts): Candidate<T>[] {
  const { path } = request
  const sent = sentPath(request)
  const others: Candidate<T>[] = []
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
    if (paths.prefixLengths[end]) others.push(...(paths.prefixes.get(path.slice(0, end)) ?? []))
  }
  others.push(...(paths.root ?? []))
  const fits = sent.length <= maxPatternText
  for (const candidate of paths.regexes) if (fits && candidate.matchesPath?.(sent)) others.push(candidate)
  return [...(paths.exact.get(sent) ?? []), ...others.sort((a, b) => rankOf(b.path) - rankOf(a.path))]
}

function resultOf<T>(
  { candidate, hostname }: Selected<T>,
  selected: Selected<T> | undefined,
): RouteCandidate<T>['result'] {
  if (selected === undefined) return { kind: 'selected' }
  if (hostname !== selected.hostname) return { kind: 'outranked', by: 'hostname' }
  const [own, other] = [candidate.path, selected.candidate.path]
  if (own.kind !== other.kind || own.value !== other.value) return { kind: 'outranked', by: 'path' }
  return {
    kind: 'outranked',
    by: compareConditions(candidate.conditions, selected.candidate.conditions) === 0 ? 'order' : 'conditions',
  }
}

/** The first condition of a candidate that is false, beside host and path. */
function failedCondition(
  { conditions }: { readonly conditions: Conditions | undefined },
  request: RequestFacts,
): RouteCandidate<unknown>['result'] | undefined {
  if (conditions === undefined) return undefined
  const { method, headers, query } = conditions
  if (method !== undefined && method !== request.method)
    return { kind: 'failed', condition: 'method', name: method }
  const header = headers.find(({ name, test }) => {
    const value = headerValue(request.headers, name)
    return value === undefined || !test(value)
  })
  if (header !== undefined) return { kind: 'failed', condition: 'header', name: header.name }
  if (query.length === 0) return undefined
  const parameters = parseQuery(request.query)
  const parameter = query.find(({ name, test }) => {
    const value = parameters.get(name)
    return value === undefined || !test(value)
  })
  return parameter && { kind: 'failed', condition: 'query', name: parameter.name }
}

/** The best match of each route with another path: those with the longest common start first. */
function otherPaths<T>(
  hosts: readonly Host<T>[],
  request: RequestFacts,
  examined: number,
): RouteCandidate<T>[] {
  const sent = sentPath(request)
  const found: { readonly common: number; readonly candidate: RouteCandidate<T> }[] = []
  const result = { kind: 'failed', condition: 'path', name: undefined } as const
  for (const { hostname, paths } of hosts) {
    const fitting = new Set(candidatesOfPath(paths, request))
    for (const candidate of allCandidates(paths)) {
      if (found.length === examined) break
      if (fitting.has(candidate)) continue
      const common = commonLength(candidate.path.value, sent)
      found.push({ common, candidate: describe(candidate, hostname, result) })
    }
  }
  const targets = new Set<T>()
  return found
    .sort((a, b) => b.common - a.common)
    .map(({ candidate }) => candidate)
    .filter(({ target }) => targets.size < targets.add(target).size)
}

function* allCandidates<T>({ exact, prefixes, root, regexes }: PathTable<T>): Generator<Candidate<T>> {
  for (const list of exact.values()) yield* list
  for (const list of prefixes.values()) yield* list
  yield* regexes
  yield* root ?? []
}

function commonLength(one: string, other: string): number {
  let length = 0
  while (length < one.length && one[length] === other[length]) length += 1
  return length
}

/** Candidates of other hosts that would receive the request there. */
function otherHosts<T>(
  hosts: Iterable<Host<T>>,
  request: RequestFacts,
  examined: number,
): RouteCandidate<T>[] {
  const found: RouteCandidate<T>[] = []
  let left = examined
  for (const { hostname, paths } of hosts) {
    if (left-- === 0) break
    const candidate = candidatesOfPath(paths, request).find(
      (each) => failedCondition(each, request) === undefined,
    )
    if (candidate !== undefined)
      found.push(describe(candidate, hostname, { kind: 'failed', condition: 'hostname', name: undefined }))
  }
  return found
}

function describe<T>(
  { found: { target }, path }: Candidate<T>,
  hostname: string,
  result: RouteCandidate<T>['result'],
): RouteCandidate<T> {
  return { target, hostname, path, result }
}
