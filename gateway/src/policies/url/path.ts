import type { Exchange } from '../../pipeline/exchange.ts'
import { exactlyOne, type Infer, string } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'

/** Another path, in whole or in its beginning. */
export const pathChangeSchema = exactlyOne(
  {
    full: string({ doc: 'The whole path.', example: '/v2/users' }),
    prefix: string({
      doc: 'What comes in place of the prefix by which the route was chosen; the rest of the path follows.',
      example: '/v2',
    }),
  },
  {},
  { doc: 'Another path. The query stays.' },
)

export type PathChange = Infer<typeof pathChangeSchema>

/** What a path may hold as it is (RFC 3986 section 3.3, less strict): no query, no fragment, nothing to be escaped. */
const pathForm = /^\/[\x21\x22\x24-\x3e\x40-\x5b\x5d-\x7e]*$/
const brokenEscape = /%(?![0-9A-Fa-f]{2})/

/** Reports paths that cannot be sent as they are. */
export function checkPathChange(change: PathChange, report: ReportIssue) {
  if (change.full !== undefined) return checkPath(change.full, (message) => report(['full'], message))
  // An empty prefix takes away the one that matched.
  if (change.prefix !== '') checkPath(change.prefix, (message) => report(['prefix'], message))
}

function checkPath(path: string, report: (message: string) => void) {
  if (path.startsWith('//')) return report('a path that begins with // would be read as a host')
  if (path.split('/').some((segment) => segment === '.' || segment === '..')) {
    return report('a path with . or .. leads elsewhere than it says')
  }
  if (pathForm.test(path) && !brokenEscape.test(path)) return
  report(`expected a path that begins with /, without ? and #, with others escaped by %, got "${path}"`)
}

/** The path as it was asked for, with the slash at its end that rules and routes do not see. */
export function askedPath({ facts, trailingSlash }: Exchange): string {
  return trailingSlash ? `${facts.request.path}/` : facts.request.path
}

/** The path that a change makes of the one asked for, whose beginning chose the route. */
export function compilePathChange(change: PathChange): (exchange: Exchange) => string {
  if (change.full !== undefined) {
    const { full } = change
    return () => full
  }
  // Between the two there is one slash, whoever brings it (Gateway API, `HTTPPathModifier.replacePrefixMatch`).
  const alone = change.prefix === '' ? '/' : change.prefix
  const before = change.prefix.endsWith('/') ? change.prefix.slice(0, -1) : change.prefix
  return (exchange) => {
    const matchedPrefix = exchange.route?.prefix ?? '/'
    const path = askedPath(exchange)
    if (path.length <= matchedPrefix.length) return alone
    const end = matchedPrefix.endsWith('/') ? matchedPrefix.length - 1 : matchedPrefix.length
    return before + path.slice(end)
  }
}
