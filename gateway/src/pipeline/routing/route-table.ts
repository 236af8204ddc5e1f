import { type MatchedRoute, type RequestFacts, sentPath } from '../exchange.ts'
import {
  anyHost,
  createHostnameTable,
  type HostnameTable,
  normaliseHostname,
  valueOfHostname,
  visitHost,
} from './hostnames.ts'
import {
  type Conditions,
  compileConditions,
  matchesConditions,
  maxPatternText,
  normaliseExactPath,
  normalisePath,
  type ParsedQuery,
  type RouteMatch,
  wholeMatch,
} from './route-match.ts'

/** A target with its hostnames and matches. */
export type RouteEntry<T> = {
  /** Exact, `*.example.com` for subdomains, `*`; an empty list matches all hosts. */
  readonly hostnames: readonly string[]
  /** One must match; an empty list matches all requests. */
  readonly matches: readonly RouteMatch[]
  readonly target: T
}

export type FindRoute<T> = (request: RequestFacts) => MatchedRoute<T> | undefined

/** Collects routes one by one, so that compilation can yield to traffic. */
export type RouteTableBuilder<T> = {
  /** Entries that are added earlier win ties. Throws on matches that `checkMatch` reports. */
  add(entry: RouteEntry<T>): void
  /** Completes the table in constant time. No entry may be added afterwards. */
  build(): FindRoute<T>
  /** The table of `build`, for explanations. */
  readonly table: RouteTable<T>
}

export type RouteTable<T> = HostnameTable<PathTable<T>>

/** Limit on matches by regular expression per hostname: they are evaluated in sequence. */
export const maxRegexMatches = 100

const allRequests: RouteMatch = {
  path: { kind: 'prefix', value: '/' },
  method: undefined,
  headers: [],
  query: [],
}

/** Compiles routes to a function that finds the route of a request. */
export function compileRouteTable<T>(entries: Iterable<RouteEntry<T>>): FindRoute<T> {
  const builder = createRouteTableBuilder<T>()
  for (const entry of entries) builder.add(entry)
  return builder.build()
}

/**
 * The most specific match wins, in the order of the Gateway API (HTTPRouteRule.matches): hostname (exact,
 * longest wildcard, all), exact path, longest prefix or regular expression, method, number of headers, number
 * of query parameters, order of the entries. Without a match on a hostname, the next less specific hostname
 * is searched.
 *
 * The Gateway API does not define the precedence of regular expressions. They rank with prefixes by the
 * length of their text, as in the reference product, or by their `rank`; on equal lengths the prefix
 * precedes. Hosts without them have no extra cost.
 *
 * Exact paths and regular expressions take the path as it is forwarded, so a trailing slash is another path
 * (Gateway API conformance); prefixes match segments and ignore it.
 *
 * A request costs one lookup for its path and one per configured prefix length, independent of the number of
 * routes; matches with the same hostname and path are evaluated in sequence.
 */
export function createRouteTableBuilder<T>(remember: RememberMatch = forget): RouteTableBuilder<T> {
  const hosts = createHostnameTable<PathTable<T>>()
  let order = 0
  return {
    add({ hostnames, matches, target }) {
      const compiled = (matches.length === 0 ? [allRequests] : matches).map((match) =>
        candidateOf(
          remember(match, () => compileMatch(match)),
          target,
          order++,
        ),
      )
      for (const hostname of hostnames.length === 0 ? [anyHost] : hostnames) {
        const table = valueOfHostname<PathTable<T>>(hosts, hostname, createPathTable)
        for (const candidate of compiled) insert(listFor(table, candidate.path), candidate)
      }
    },
    build: () => (request) => {
      const outcome = visitHost(hosts, request.host, findOnHost<T>, request)
      return outcome === unroutable ? undefined : outcome
    },
    table: hosts,
  }
}

/** Reports hostnames that exceed the limit on regular expressions. */
export function checkRegexMatches(
  entries: Iterable<Omit<RouteEntry<unknown>, 'target'>>,
  report: (entry: number, message: string) => void,
): void {
  const counts = new Map<string, number>()
  let index = 0
  for (const { hostnames, matches } of entries) {
    const regexes = matches.filter((match) => match.path.kind === 'regex').length
    if (regexes > 0) {
      for (const hostname of hostnames.length === 0 ? [anyHost] : hostnames) {
        const name = normaliseHostname(hostname)
        const before = counts.get(name) ?? 0
        counts.set(name, before + regexes)
        if (before <= maxRegexMatches && before + regexes > maxRegexMatches)
          report(
            index,
            `more than ${maxRegexMatches} matches by regular expression on hostname "${hostname}"`,
          )
      }
    }
    index++
  }
}

/** Ends the search: a path too long for regular expressions must not match a less specific route. */
const unroutable = Symbol('unroutable')

/** Caches the compiled form of a match, which the next table has as well. */
export type RememberMatch = (match: RouteMatch, compile: () => CompiledMatch) => CompiledMatch

const forget: RememberMatch = (_match, compile) => compile()

export type CompiledMatch = {
  /** Normalised. */
  readonly path: RouteMatch['path']
  readonly conditions: Conditions | undefined
  /** For regular expressions only. */
  readonly matchesPath: ((path: string) => boolean) | undefined
}

export type Candidate<T> = CompiledMatch & { readonly found: MatchedRoute<T>; readonly order: number }

/** The routes of one hostname. Lists are sorted by decreasing specificity. */
export type PathTable<T> = {
  readonly exact: Map<string, Candidate<T>[]>
  readonly prefixes: Map<string, Candidate<T>[]>
  /** Whether a prefix of this length exists. */
  readonly prefixLengths: boolean[]
  /** For all paths. */
  root: Candidate<T>[] | undefined
  readonly regexes: Candidate<T>[]
}

function createPathTable<T>(): PathTable<T> {
  return { exact: new Map(), prefixes: new Map(), prefixLengths: [], root: undefined, regexes: [] }
}

function candidateOf<T>(
  { path, conditions, matchesPath }: CompiledMatch,
  target: T,
  order: number,
): Candidate<T> {
  const found = { target, prefix: path.kind === 'prefix' ? path.value : '/' }
  return { path, found, conditions, order, matchesPath }
}

function compileMatch(match: RouteMatch): CompiledMatch {
  const conditions = compileConditions(match)
  const { kind, value } = match.path
  if (kind === 'regex') return { path: match.path, conditions, matchesPath: wholeMatch(value) }
  const path = kind === 'exact' ? normaliseExactPath(value) : normalisePath(value)
  if (path === undefined) throw new Error(`no request has the path "${value}"`)
  return { path: { kind, value: path }, conditions, matchesPath: undefined }
}

/** The list for candidates of a path. */
function listFor<T>(table: PathTable<T>, { kind, value }: RouteMatch['path']): Candidate<T>[] {
  if (kind === 'regex') return table.regexes
  if (kind === 'exact') return listOf(table.exact, value)
  if (value === '/') {
    table.root ??= []
    return table.root
  }
  while (table.prefixLengths.length <= value.length) table.prefixLengths.push(false)
  table.prefixLengths[value.length] = true
  return listOf(table.prefixes, value)
}

function listOf<T>(lists: Map<string, T[]>, key: string): T[] {
  const known = lists.get(key)
  if (known !== undefined) return known
  const list: T[] = []
  lists.set(key, list)
  return list
}

/** Inserts in order, so that every step of the compilation is short. */
function insert<T>(list: Candidate<T>[], candidate: Candidate<T>): void {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    const other = list[middle]
    if (other !== undefined && compare(other, candidate) <= 0) low = middle + 1
    else high = middle
  }
  if (low === list.length) list.push(candidate)
  else list.splice(low, 0, candidate)
}

/** Compares candidates of the same kind of path: negative if `a` is more specific. */
function compare(a: Candidate<unknown>, b: Candidate<unknown>): number {
  if (a.matchesPath) {
    const difference = rankOf(b.path) - rankOf(a.path)
    if (difference !== 0) return difference
  }
  return compareConditions(a.conditions, b.conditions) || a.order - b.order
}

/** Compares conditions beside the path: negative if the first are more specific, 0 if the order decides. */
export function compareConditions(one: Conditions | undefined, other: Conditions | undefined): number {
  return (
    Number(other?.method !== undefined) - Number(one?.method !== undefined) ||
    (other?.headers.length ?? 0) - (one?.headers.length ?? 0) ||
    (other?.query.length ?? 0) - (one?.query.length ?? 0)
  )
}

function ranksAbove(candidate: Candidate<unknown> | undefined, length: number): boolean {
  return candidate !== undefined && rankOf(candidate.path) > length
}

/** The length by which a regular expression ranks among prefixes. */
export function rankOf({ rank, value }: RouteMatch['path']): number {
  return rank ?? value.length
}

function findOnHost<T>(
  table: PathTable<T>,
  request: RequestFacts,
): MatchedRoute<T> | typeof unroutable | undefined {
  const { path } = request
  const { exact, prefixes, prefixLengths, root, regexes } = table
  if (exact.size > 0) {
    const list = exact.get(sentPath(request))
    const found = list && firstMatching(list, request)
    if (found) return found
  }
  if (regexes.length > 0) return findAmongRegexes(table, request)
  // From the longest: the whole path, then up to each slash before it.
  const longest = prefixLengths.length - 1
  let end = path.length > longest ? path.lastIndexOf('/', longest) : path.length
  while (end > 0) {
    if (prefixLengths[end]) {
      const list = prefixes.get(end === path.length ? path : path.slice(0, end))
      const found = list && firstMatching(list, request)
      if (found) return found
    }
    end = path.lastIndexOf('/', end - 1)
  }
  return root && firstMatching(root, request)
}

/** Searches prefixes and regular expressions by decreasing length; exact paths are searched before. */
function findAmongRegexes<T>(
  { prefixes, prefixLengths, root, regexes }: PathTable<T>,
  request: RequestFacts,
): MatchedRoute<T> | typeof unroutable | undefined {
  const { path } = request
  let evaluated = 0

  function matchLonger(than: number): MatchedRoute<T> | typeof unroutable | undefined {
    const from = evaluated
    while (evaluated < regexes.length && ranksAbove(regexes[evaluated], than)) evaluated += 1
    if (evaluated === from) return undefined
    return path.length > maxPatternText ? unroutable : firstMatching(regexes.slice(from, evaluated), request)
  }

  let end = path.length
  while (end > 0) {
    const list = prefixLengths[end] ? prefixes.get(path.slice(0, end)) : undefined
    const found = list && (matchLonger(end) ?? firstMatching(list, request))
    if (found) return found
    end = path.lastIndexOf('/', end - 1)
  }
  return matchLonger(1) ?? (root && firstMatching(root, request)) ?? matchLonger(-1)
}

function firstMatching<T>(list: readonly Candidate<T>[], request: RequestFacts): MatchedRoute<T> | undefined {
  let parsed: ParsedQuery | undefined
  for (const { conditions, found, matchesPath } of list) {
    if (matchesPath && !matchesPath(sentPath(request))) continue
    if (conditions === undefined) return found
    parsed ??= { parameters: undefined }
    if (matchesConditions(conditions, request, parsed)) return found
  }
  return undefined
}
