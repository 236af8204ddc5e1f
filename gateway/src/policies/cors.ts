import { milliseconds } from '../lib/duration.ts'
import { isToken } from '../lib/http-token.ts'
import { firstHeader, type Headers } from '../net/http/headers.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { RequestFacts } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import { boolean, duration, type Infer, list, name, object, optional } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** `cors`: cross-origin access for web pages (Fetch standard, "CORS protocol"). */
export const corsSchema = object(
  {
    allowOrigins: optional(
      list(
        name({
          doc: 'Scheme and host, `*` for any, `https://*`, `https://*.example.com` or `http://localhost:*`.',
        }),
        {
          doc: 'Origins whose pages may read replies.',
          example: ['https://chat.example.com', 'https://*.example.org'],
        },
      ),
    ),
    allowMethods: optional(
      list(name({ doc: 'A method, or `*`.' }), {
        doc: 'Methods beyond GET, HEAD and POST that pages may use.',
        example: ['DELETE'],
      }),
    ),
    allowHeaders: optional(
      list(name({ doc: 'A header name, or `*` for any, `authorization` included.' }), {
        doc: 'Request headers that pages may set.',
        example: ['authorization', 'content-type'],
      }),
    ),
    exposeHeaders: optional(
      list(name({ doc: 'A header name, or `*`.' }), {
        doc: 'Reply headers that pages may read.',
        example: ['x-ratelimit-remaining'],
      }),
    ),
    allowCredentials: optional(
      boolean({
        doc: 'Whether pages may send cookies. Together with `*`, replies name the origin, method and headers of the request: pages of every site can then act for their users.',
        default: false,
      }),
    ),
    maxAge: optional(duration({ doc: 'Lifetime of preflight results in browser caches.', example: '10m' })),
  },
  { doc: 'Cross-origin access for web pages.' },
)

export type CorsConfig = Infer<typeof corsSchema>

const originForm = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s*]+$/
const listFields = ['allowOrigins', 'allowMethods', 'allowHeaders', 'exposeHeaders'] as const

/** Reports invalid origins and names. */
export function checkCors(config: CorsConfig, report: ReportIssue) {
  config.allowOrigins?.forEach((origin, index) => {
    if (!isOriginPattern(origin)) {
      report(
        ['allowOrigins', index],
        `expected scheme://host[:port] without a path, *, https://*, https://*.example.com or http://localhost:*, got "${origin}"`,
      )
    }
  })
  for (const field of listFields) {
    config[field]?.forEach((entry, index) => {
      if (field !== 'allowOrigins' && !isToken(entry)) {
        report([field, index], `not a ${field === 'allowMethods' ? 'method' : 'header name'}: "${entry}"`)
      }
    })
  }
}

/** Compiles a policy that responds to preflights and adds CORS headers to every reply, including refusals. */
export function compileCors(config: CorsConfig): Policy {
  const isAllowed = compileOrigins(config.allowOrigins ?? [])
  // With credentials, browsers take `*` as a name (Fetch standard, "CORS check").
  const anyOrigin = config.allowOrigins?.includes('*') === true && config.allowCredentials !== true
  const setOrigin = (headers: Headers, origin: string) => {
    headers['access-control-allow-origin'] = anyOrigin ? '*' : origin
    if (config.allowCredentials === true) headers['access-control-allow-credentials'] = 'true'
  }
  const setPermissions = compilePermissions(config)
  const exposed = compileExposed(config)

  return {
    name: 'cors',
    onRequest({ facts: { request } }) {
      if (!isPreflight(request)) return undefined
      const headers: Headers = { vary: preflightVary }
      const origin = firstHeader(request.headers, 'origin')
      if (origin !== undefined && isAllowed(origin)) {
        setOrigin(headers, origin)
        setPermissions(headers, request.headers)
        expose(headers, exposed.fixed)
      }
      return { status: 200, headers, body: undefined }
    },
    onReply({ facts: { request } }, reply) {
      if (isPreflight(request)) return reply
      // CORS headers of an upstream refer to its own address.
      for (const header of upstreamHeaders) delete reply.headers[header]
      // The reply is the same for every origin, so that caches need no `vary`.
      if (!anyOrigin) addVary(reply)
      const origin = firstHeader(request.headers, 'origin')
      if (origin === undefined || !isAllowed(origin)) return reply
      setOrigin(reply.headers, origin)
      expose(reply.headers, exposed.ofReply?.(reply.headers) ?? exposed.fixed)
      return reply
    },
    explain({ facts: { request } }) {
      const origin = firstHeader(request.headers, 'origin')
      if (origin === undefined) return undefined
      return { origin: isAllowed(origin) ? 'allowed' : 'not allowed', preflight: isPreflight(request) }
    },
  }
}

type Exposed = {
  /** Empty if no header is exposed, or if the list depends on the reply. */
  fixed: string
  ofReply: ((headers: Headers) => string) | undefined
}

/** Compiles `exposeHeaders`. With credentials, `*` becomes the names of the reply. */
function compileExposed({ exposeHeaders = [], allowCredentials }: CorsConfig): Exposed {
  if (allowCredentials !== true || !exposeHeaders.includes('*'))
    return { fixed: exposeHeaders.join(', '), ofReply: undefined }
  return {
    fixed: '',
    ofReply: (headers) =>
      Object.keys(headers)
        .filter((name) => isToken(name) && name !== 'set-cookie' && !name.startsWith('access-control-'))
        .join(', '),
  }
}

function expose(headers: Headers, names: string): void {
  if (names !== '') headers['access-control-expose-headers'] = names
}

const preflightVary = 'origin, access-control-request-method, access-control-request-headers'
const upstreamHeaders = [
  'access-control-allow-origin',
  'access-control-allow-credentials',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-expose-headers',
  'access-control-max-age',
]

function isPreflight({ method, headers }: RequestFacts): boolean {
  return (
    method === 'OPTIONS' &&
    headers['origin'] !== undefined &&
    headers['access-control-request-method'] !== undefined
  )
}

/**
 * Sets the permissions of a preflight. A list with `*` echoes the requested names, because `*` excludes
 * `authorization`.
 */
function compilePermissions(config: CorsConfig): (headers: Headers, asked: Headers) => void {
  const methods = config.allowMethods ?? []
  const headerNames = config.allowHeaders ?? []
  const maxAgeMs = milliseconds(config.maxAge)
  const maxAge = maxAgeMs === undefined ? undefined : String(Math.floor(maxAgeMs / 1000))
  return (headers, asked) => {
    const allowedMethods = permitted(methods, firstHeader(asked, 'access-control-request-method'))
    if (allowedMethods !== '') headers['access-control-allow-methods'] = allowedMethods
    const allowedHeaders = permitted(headerNames, firstHeader(asked, 'access-control-request-headers'))
    if (allowedHeaders !== '') headers['access-control-allow-headers'] = allowedHeaders
    if (maxAge !== undefined) headers['access-control-max-age'] = maxAge
  }
}

function permitted(allowed: readonly string[], asked: string | undefined): string {
  if (!allowed.includes('*')) return allowed.join(', ')
  const names = (asked ?? '').split(',').map((entry) => entry.trim())
  return names.filter(isToken).join(', ')
}

function isOriginPattern(origin: string): boolean {
  if (origin === '*' || origin === 'null') return true
  const pattern = wildcardForm.exec(origin.toLowerCase())
  return originForm.test(pattern === null ? origin.toLowerCase() : origin.toLowerCase().replace('*', '1'))
}

/** `*` as the whole host, as its first label, or as the port. */
const wildcardForm = /^([^*]*:\/\/)\*([.:][^*]+)?$|^([^*]*:\/\/[^*]+:)\*$/
const wildcardText = /^[a-z0-9.-]+$/

/** Compiles `allowOrigins` to a predicate on the `origin` header. */
export function compileOrigins(origins: readonly string[]): (origin: string) => boolean {
  if (origins.includes('*')) return () => true
  const lower = origins.map((origin) => origin.toLowerCase())
  const exact = new Set(lower.filter((origin) => !origin.includes('*')))
  const patterns = lower.flatMap((origin) => {
    const star = origin.indexOf('*')
    return star === -1 ? [] : [{ before: origin.slice(0, star), after: origin.slice(star + 1) }]
  })
  return (origin) => {
    if (exact.has(origin)) return true
    return patterns.some(
      ({ before, after }) =>
        origin.length > before.length + after.length &&
        origin.startsWith(before) &&
        origin.endsWith(after) &&
        wildcardText.test(origin.slice(before.length, origin.length - after.length)),
    )
  }
}

/** Adds `origin` to `vary`, which an upstream may have set. */
function addVary(reply: Reply) {
  const value = reply.headers['vary']
  const present = typeof value === 'object' ? value.join(', ') : (value ?? '')
  const fields = present.split(',').map((field) => field.trim().toLowerCase())
  if (fields.includes('origin') || fields.includes('*')) return
  reply.headers['vary'] = present === '' ? 'origin' : `${present}, origin`
}
