import { firstHeader } from '../net/http/headers.ts'
import type { Reply } from '../net/http-client/send.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import { type Infer, list, name, object, optional } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** `csrf`: protection of browsers that send credentials by themselves. */
export const csrfSchema = object(
  {
    additionalOrigins: optional(
      list(name({ doc: 'Scheme, host and port of an origin, in lower case.' }), {
        doc: 'Origins whose pages may send requests that change something, beside the own origin.',
        example: ['https://portal.example.com'],
      }),
    ),
  },
  {
    doc: 'Protection against cross-site request forgery: requests of pages of other origins are refused, except GET, HEAD and OPTIONS without an upgrade to WebSocket. Requests without `Sec-Fetch-Site` and `Origin` are not from a page.',
  },
)

export type CsrfConfig = Infer<typeof csrfSchema>

const originForm = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s*A-Z]+$/

/** Reports origins that no browser sends. */
export function checkCsrf({ additionalOrigins = [] }: CsrfConfig, report: ReportIssue): void {
  additionalOrigins.forEach((origin, index) => {
    if (!originForm.test(origin))
      report(
        ['additionalOrigins', index],
        `must be scheme://host[:port] in lower case, without a path and without *, got "${origin}"`,
      )
  })
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Compiles the check of a request's origin. Browsers report the relation of page and address in
 * `Sec-Fetch-Site` (Fetch Metadata), older ones the origin of the page, which must have the host of the
 * request. `isTrusted` admits further origins.
 */
export function compileCsrf(
  { additionalOrigins = [] }: CsrfConfig,
  isTrusted: (origin: string) => boolean = () => false,
): Policy {
  const additional: ReadonlySet<string> = new Set(additionalOrigins)

  function isPermitted({ upgrade, facts: { request } }: Exchange): boolean {
    // Pages open WebSockets of other origins with GET, without a preflight.
    if (upgrade === undefined && safeMethods.has(request.method)) return true
    const origin = firstHeader(request.headers, 'origin')
    if (origin !== undefined && (additional.has(origin) || isTrusted(origin))) return true
    const site = firstHeader(request.headers, 'sec-fetch-site')
    // `none`: the user started the request, for example in the address bar.
    if (site !== undefined) return site === 'same-origin' || site === 'none'
    return origin === undefined || hostOf(origin) === request.host.toLowerCase()
  }

  return {
    name: 'csrf',
    onRequest: (exchange) => (isPermitted(exchange) ? undefined : refused(exchange)),
    explain: (exchange) => ({ origin: isPermitted(exchange) ? 'allowed' : 'not allowed' }),
  }
}

/** Host and port of an origin. The scheme is ignored, because TLS may terminate before the gateway. */
function hostOf(origin: string): string | undefined {
  return /^https?:\/\/([^/?#@\s]+)$/i.exec(origin)?.[1]?.toLowerCase()
}

function refused(exchange: Exchange): Reply {
  exchange.log.refusedBy = 'csrf'
  return refuse(exchange, {
    status: 403,
    code: 'cross_origin_request',
    message: 'cross-origin request detected: csrf.additionalOrigins lists permitted origins',
  })
}
