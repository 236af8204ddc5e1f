import { type Exchange, sentPath } from '../../pipeline/exchange.ts'
import { exactlyOne, type Infer, string } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'

/** Replacement of a path or its prefix. */
export const pathChangeSchema = exactlyOne(
  {
    full: string({ doc: 'Full path.', example: '/v2/users' }),
    prefix: string({
      doc: 'Replacement of the matched prefix; the rest of the path is unchanged.',
      example: '/v2',
    }),
  },
  {},
  { doc: 'Replaced path. The query is unchanged.' },
)

export type PathChange = Infer<typeof pathChangeSchema>

/**
 * Valid unescaped path (RFC 3986 section 3.3, less strict): no query, no fragment, no characters that need
 * escaping.
 */
const pathForm = /^\/[\x21\x22\x24-\x3e\x40-\x5b\x5d-\x7e]*$/
const brokenEscape = /%(?![0-9A-Fa-f]{2})/

/** Reports paths that are not valid in a request. */
export function checkPathChange(change: PathChange, report: ReportIssue) {
  if (change.full !== undefined) return checkPath(change.full, (message) => report(['full'], message))
  // An empty prefix removes the matched one.
  if (change.prefix !== '') checkPath(change.prefix, (message) => report(['prefix'], message))
}

function checkPath(path: string, report: (message: string) => void) {
  if (path.startsWith('//')) return report('must not begin with //, which is parsed as a host')
  if (path.split('/').some((segment) => segment === '.' || segment === '..')) {
    return report('must not have . or .. as a segment')
  }
  if (pathForm.test(path) && !brokenEscape.test(path)) return
  report(`expected a path that begins with /, without ? and #, with others escaped by %, got "${path}"`)
}

/** Compiles a replacement of the requested path, which begins with `matchedPrefix`. */
export function compilePathChange(change: PathChange): (exchange: Exchange) => string {
  if (change.full !== undefined) {
    const { full } = change
    return () => full
  }
  // Exactly one slash separates prefix and rest (Gateway API, `HTTPPathModifier.replacePrefixMatch`).
  const alone = change.prefix === '' ? '/' : change.prefix
  const before = change.prefix.endsWith('/') ? change.prefix.slice(0, -1) : change.prefix
  return (exchange) => {
    const matchedPrefix = exchange.route?.prefix ?? '/'
    const path = sentPath(exchange.facts.request)
    if (path.length <= matchedPrefix.length) return alone
    const end = matchedPrefix.endsWith('/') ? matchedPrefix.length - 1 : matchedPrefix.length
    return before + path.slice(end)
  }
}
