import { refuse } from '../../pipeline/errors.ts'
import { type RequestFacts, sentPath } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { enumeration, exactlyOne, type Infer, integer, object, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import {
  type Authority,
  authorityFields,
  authorityText,
  checkAuthority,
  splitAuthority,
} from './authority.ts'
import { checkPathChange, compilePathChange, pathChangeSchema } from './path.ts'

const statuses: readonly number[] = [301, 302, 303, 307, 308]

/** `requestRedirect`: redirects clients to another address. */
export const requestRedirectSchema = object(
  {
    scheme: optional(
      enumeration(['http', 'https'], {
        doc: 'Target scheme, at its default port unless `authority` has a port. Default: the scheme of the request.',
        example: 'https',
      }),
    ),
    authority: optional(exactlyOne(authorityFields, {}, { doc: 'Target host.' })),
    path: optional(pathChangeSchema),
    status: optional(
      integer(
        { doc: 'One of 301, 302, 303, 307 and 308.', default: 302, example: 301 },
        { min: 301, max: 308 },
      ),
    ),
  },
  {
    doc: 'Responds with a redirect. Unconfigured parts of the address and the query are those of the request.',
  },
)

export type RequestRedirectConfig = Infer<typeof requestRedirectSchema>

/**
 * Reports invalid hosts, paths and statuses. A status alone is a redirect to the same address, such as 303
 * from POST to GET (Gateway API, `HTTPRequestRedirectFilter`); an empty redirect is an omission.
 */
export function checkRequestRedirect(config: RequestRedirectConfig, report: ReportIssue) {
  const { scheme, authority, path, status } = config
  if (authority !== undefined) {
    checkAuthority(authority, (under, message) => report(['authority', ...under], message))
  }
  if (path !== undefined) checkPathChange(path, (under, message) => report(['path', ...under], message))
  if (status !== undefined && !statuses.includes(status)) {
    report(['status'], `expected one of ${statuses.join(', ')}, got ${status}`)
  }
  if (scheme === undefined && authority === undefined && path === undefined && status === undefined) {
    report([], 'would redirect to the same address: set scheme, authority, path or status')
  }
}

/** Compiles a redirect to an absolute address, so that no path is parsed as a host. */
export function compileRequestRedirect(config: RequestRedirectConfig): Policy {
  const { scheme, path, status = 302 } = config
  const changedPath = path && compilePathChange(path)
  const authorityOf = compileAuthority(config)
  return {
    name: 'redirect',
    onRequest(exchange) {
      const { request } = exchange.facts
      const authority = authorityOf(request)
      if (authority === undefined) {
        return refuse(exchange, { status: 400, code: 'bad_request', message: 'malformed host' })
      }
      const chosen = scheme ?? request.scheme
      const target = changedPath?.(exchange) ?? sentPath(request)
      const location = `${chosen}://${authorityText(authority, chosen)}${target}${request.query}`
      return { status, headers: { location: escaped(location) }, body: undefined }
    },
  }
}

/**
 * A configured scheme without a port implies its default port (Gateway API,
 * `HTTPRequestRedirectFilter.port`).
 */
function compileAuthority({ scheme, authority }: RequestRedirectConfig) {
  if (authority?.full !== undefined) {
    const fixed = splitAuthority(authority.full)
    return () => fixed
  }
  const { host, port } = authority ?? {}
  if (host !== undefined && scheme !== undefined) {
    const fixed: Authority = { host, port: undefined }
    return () => fixed
  }
  return (request: RequestFacts): Authority | undefined => {
    const asked = splitAuthority(request.host)
    if (asked === undefined) return undefined
    const askedPort = scheme === undefined ? asked.port : undefined
    return { host: host ?? asked.host, port: port ?? askedPort }
  }
}

/**
 * Escapes bytes beyond ASCII, which requests may contain against the RFC; there are no control characters.
 */
function escaped(location: string): string {
  return location.replace(/[^\x21-\x7e]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0
    if (code <= 0xff) return `%${code.toString(16).toUpperCase().padStart(2, '0')}`
    return character.isWellFormed() ? encodeURIComponent(character) : '%EF%BF%BD'
  })
}
