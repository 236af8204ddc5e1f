import { isToken } from '../../lib/http-token.ts'
import { compilePattern } from '../../lib/pattern.ts'
import { parseRequestTarget, type RequestTarget } from '../../lib/request-target.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { type RequestFacts, sentPath } from '../exchange.ts'
import { parseQuery } from './query-parameters.ts'

/**
 * The path condition of a match. A `regex` must match the whole path, in RE2 syntax. `exact` and `regex` take
 * a trailing slash into account, `prefix` does not.
 */
export type PathMatch = {
  readonly kind: 'exact' | 'prefix' | 'regex'
  readonly value: string
  /** Length by which a `regex` ranks among prefixes; that of its text by default. */
  readonly rank?: number | undefined
}

/** A condition on the complete value of a header or query parameter. */
export type ValueMatch = { readonly name: string; readonly kind: 'exact' | 'regex'; readonly value: string }

/** Conditions of a match; all must be true. */
export type RouteMatch = {
  readonly path: PathMatch
  readonly method: string | undefined
  readonly headers: readonly ValueMatch[]
  readonly query: readonly ValueMatch[]
}

/** Longest text for regular expressions of routes: their time grows with its length. */
export const maxPatternText = 8192

/** Reports mistakes that prevent a match. Only matches without mistakes may be compiled. */
export function checkMatch(match: RouteMatch, report: ReportIssue): void {
  checkPath(match.path, report)
  const { method } = match
  if (method !== undefined) {
    if (!isToken(method)) report(['method'], `method must be a token such as GET, got "${method}"`)
    else if (method !== method.toUpperCase()) {
      report(['method'], `methods are case-sensitive: write ${method.toUpperCase()}, not ${method}`)
    }
  }
  for (const [index, header] of match.headers.entries()) {
    if (!isToken(header.name)) report(['headers', index, 'name'], `"${header.name}" is not a header name`)
    checkValue(header, ['headers', index], report)
  }
  for (const [index, parameter] of match.query.entries()) checkValue(parameter, ['query', index], report)
}

function checkPath({ kind, value }: PathMatch, report: ReportIssue): void {
  if (kind === 'regex') {
    const pattern = compilePattern(value)
    if (!pattern.ok) report(['path', 'regex'], pattern.message)
    return
  }
  const place = ['path', kind === 'prefix' ? 'pathPrefix' : 'exact']
  if (!value.startsWith('/')) report(place, `path must start with a slash, got "${value}"`)
  else if (value.includes('?')) report(place, `path must not have a query, got "${value}"`)
  else if (normalisePath(value) === undefined) {
    report(place, `no request has the path "${value}": spaces, backslashes, # and % are written as escapes`)
  }
}

function checkValue({ kind, value }: ValueMatch, place: (string | number)[], report: ReportIssue): void {
  if (kind !== 'regex') return
  const pattern = compilePattern(value)
  if (!pattern.ok) report([...place, 'value', 'regex'], pattern.message)
}

/**
 * Normalises a configured path like `parseRequestTarget` does a request path; undefined if no request can
 * have it.
 */
export function normalisePath(path: string): string | undefined {
  return parseConfigured(path)?.path
}

/** As `normalisePath`, with the trailing slash. */
export function normaliseExactPath(path: string): string | undefined {
  const target = parseConfigured(path)
  return target && sentPath(target)
}

function parseConfigured(path: string): RequestTarget | undefined {
  // Clients escape characters outside ASCII.
  const escaped = path.replace(/[^\0-\x7f]+/g, (text) => encodeURIComponent(text.toWellFormed()))
  return escaped.includes('?') ? undefined : parseRequestTarget(escaped)
}

/** Compiled conditions other than the path. */
export type Conditions = {
  readonly method: string | undefined
  readonly headers: readonly Condition[]
  readonly query: readonly Condition[]
}

type Condition = { readonly name: string; test(value: string): boolean }

/** Compiles the conditions of a match; undefined without conditions. */
export function compileConditions({ method, headers, query }: RouteMatch): Conditions | undefined {
  if (method === undefined && headers.length === 0 && query.length === 0) return undefined
  return {
    method,
    headers: headers.map((header) => compileCondition(header.name.toLowerCase(), header)),
    query: query.map((parameter) => compileCondition(parameter.name, parameter)),
  }
}

function compileCondition(name: string, { kind, value: wanted }: ValueMatch): Condition {
  return { name, test: kind === 'exact' ? (value) => value === wanted : wholeMatch(wanted) }
}

/** Compiles a pattern to match a complete text; texts longer than `maxPatternText` never match. */
export function wholeMatch(source: string): (text: string) => boolean {
  // Compiled without the group as well, because `a)|(b` is valid only inside one.
  const alone = compilePattern(source)
  const whole = alone.ok ? compilePattern(`^(?:${source})$`) : alone
  if (!whole.ok) throw new Error(whole.message)
  return (text) => text.length <= maxPatternText && whole.test(text)
}

/** Parsed query parameters, shared by several conditions. */
export type ParsedQuery = { parameters: ReadonlyMap<string, string> | undefined }

export function matchesConditions(
  conditions: Conditions,
  request: RequestFacts,
  parsed: ParsedQuery,
): boolean {
  const { method, headers, query } = conditions
  if (method !== undefined && method !== request.method) return false
  for (const header of headers) {
    const value = headerValue(request.headers, header.name)
    if (value === undefined || !header.test(value)) return false
  }
  if (query.length === 0) return true
  parsed.parameters ??= parseQuery(request.query)
  for (const parameter of query) {
    const value = parsed.parameters.get(parameter.name)
    if (value === undefined || !parameter.test(value)) return false
  }
  return true
}

/** The value of a header; repeated headers are joined (RFC 9110 section 5.3). */
export function headerValue(headers: Headers, name: string): string | undefined {
  const value: unknown = headers[name]
  if (typeof value === 'string') return value
  // Inherited names such as `constructor` are no headers.
  return Array.isArray(value) ? value.join(', ') : undefined
}
