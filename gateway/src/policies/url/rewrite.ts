import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { forwardingOf } from '../../pipeline/request-edits.ts'
import { anyOfShapes, enumeration, exactlyOne, type Infer, object, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { authorityFields, authorityText, checkAuthority, splitAuthority } from './authority.ts'
import { checkPathChange, compilePathChange, pathChangeSchema } from './path.ts'

/** `urlRewrite`: host and path of forwarded requests. */
export const urlRewriteSchema = object(
  {
    authority: optional(
      anyOfShapes(
        [
          enumeration(['auto', 'none'], {
            doc: '`auto` is the host of the upstream, `none` that of the client.',
          }),
          exactlyOne(authorityFields, {}, { doc: 'Replaced host.' }),
        ],
        { doc: 'Host header sent to the upstream. It does not select the upstream.', default: 'auto' },
      ),
    ),
    path: optional(pathChangeSchema),
  },
  {
    doc: 'Changes host and path of forwarded requests. Expressions see the original request.',
  },
)

export type UrlRewriteConfig = Infer<typeof urlRewriteSchema>

/** Reports invalid hosts and paths. */
export function checkUrlRewrite({ authority, path }: UrlRewriteConfig, report: ReportIssue) {
  if (typeof authority === 'object') {
    checkAuthority(authority, (under, message) => report(['authority', ...under], message))
  }
  if (path !== undefined) checkPathChange(path, (under, message) => report(['path', ...under], message))
}

/** Records host and path of the forwarded request. The original request is unchanged. */
export function compileUrlRewrite({ authority, path }: UrlRewriteConfig): Policy {
  const changedPath = path && compilePathChange(path)
  const port = typeof authority === 'object' ? authority.port : undefined
  const host = port === undefined ? fixedHost(authority) : undefined
  return {
    name: 'url rewrite',
    onRequest(exchange) {
      const { request } = exchange.facts
      const forwarding = forwardingOf(exchange)
      if (changedPath !== undefined) forwarding.path = changedPath(exchange)
      if (port === undefined) {
        forwarding.host = host
        return undefined
      }
      const asked = splitAuthority(request.host)
      if (asked === undefined) return refuseHost(exchange)
      forwarding.host = authorityText({ host: asked.host, port }, request.scheme)
      return undefined
    },
  }
}

function fixedHost(authority: UrlRewriteConfig['authority']): string | undefined {
  if (authority === undefined || authority === 'auto') return undefined
  return authority === 'none' ? 'client' : (authority.full ?? authority.host)
}

function refuseHost(exchange: Exchange) {
  return refuse(exchange, { status: 400, code: 'bad_request', message: 'malformed host' })
}
