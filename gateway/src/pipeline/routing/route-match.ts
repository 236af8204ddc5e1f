import { isToken } from '../../lib/http-token.ts'
import { compilePattern } from '../../lib/pattern.ts'
import { parseRequestTarget } from '../../lib/request-target.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { RequestFacts } from '../exchange.ts'
import { parseQuery } from './query-parameters.ts'

/** The path a match is for. A `regex` must match the whole path, in RE2 syntax. */
export type PathMatch = { readonly kind: 'exact' | 'prefix' | 'regex'; readonly value: string }

/** What the value of a header or query parameter has to be, the whole of it. */
export type ValueMatch = { readonly name: string; readonly kind: 'exact' | 'regex'; readonly value: string }

/** Conditions that must all hold. */
export type RouteMatch = {
  readonly path: PathMatch
  readonly method: string | undefined
  readonly headers: readonly ValueMatch[]
  readonly query: readonly ValueMatch[]
}

/** Longest text a regular expression of a route is asked about: their time grows with it. */
export const maxPatternText = 8192

/** Reports what keeps a match from ever matching. Only matches without mistakes may be compiled. */
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
    if (!isToken(header.name)) report(['headers', index, 'name'], `"${header.name}" is no header name`)
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

/** A configured path as requests have it after `parseRequestTarget`. */
export function normalisePath(path: string): string | undefined {
  // Clients send characters beyond ASCII escaped.
  const escaped = path.replace(/[^\0-\x7f]+/g, (text) => encodeURIComponent(text.toWellFormed()))
  return escaped.includes('?') ? undefined : parseRequestTarget(escaped)?.path
}

/** Conditions beside the path, ready to be asked. */
export type Conditions = {
  readonly method: string | undefined
  readonly headers: readonly Condition[]
  readonly query: readonly Condition[]
}

type Condition = { readonly name: string; test(value: string): boolean }

/** Undefined where there are none. */
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

/** Whether a pattern matches the whole of a text; longer texts than `maxPatternText` never do. */
export function wholeMatch(source: string): (text: string) => boolean {
  // Compiled alone as well: in a group, `a)|(b` would look right.
  const alone = compilePattern(source)
  const whole = alone.ok ? compilePattern(`^(?:${source})$`) : alone
  if (!whole.ok) throw new Error(whole.message)
  return (text) => text.length <= maxPatternText && whole.test(text)
}

/** Remembers the parameters of one query while several conditions ask for them. */
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

/** Repeated headers count as one, joined (RFC 9110 section 5.3). */
function headerValue(headers: Headers, name: string): string | undefined {
  const value: unknown = headers[name]
  if (typeof value === 'string') return value
  // Names such as `constructor` are there without having been sent.
  return Array.isArray(value) ? value.join(', ') : undefined
}
