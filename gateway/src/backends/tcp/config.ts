import { hostnameMistake } from '../../pipeline/routing/hostnames.ts'
import { exactlyOne, hostPort, type Infer, integer, list, name, object, optional } from '../../schema/dsl.ts'
import { gatewayReferences } from '../../schema/gateway-references.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendHost, checkBackendPolicies, checkBackendTls } from '../../upstream/check.ts'
import { backendPolicyFields, findBackend, hasServers, type NamedBackend } from '../../upstream/config.ts'
import { missingBackend } from '../../upstream/destination.ts'
import {
  checkDynamic,
  connectionTargetVariables,
  dynamicSchema,
  noDynamicTunnel,
} from '../../upstream/dynamic.ts'

const { backendTLS, backendTunnel, tcp, health } = backendPolicyFields

const backend = exactlyOne(
  {
    host: hostPort({ doc: 'Address as `host:port`.', example: 'db.internal:5432' }),
    backend: name({
      doc: 'Name of an entry of `backends` with a host or endpoints, as `/<name>`.',
      example: '/db',
    }),
    dynamic: dynamicSchema,
    reject: object(
      {},
      {
        doc: 'Resets its share of the connections, for example in place of an unknown backend.',
        advanced: true,
      },
    ),
  },
  {
    weight: optional(
      integer(
        {
          doc: 'Share of the connections relative to the other weights; 0 disables the backend.',
          default: 1,
        },
        { min: 0, max: 1_000_000 },
      ),
    ),
    policies: optional(
      object({ backendTLS, backendTunnel, tcp, health }, { doc: 'Policies of connections to the backend.' }),
    ),
  },
  { doc: 'A destination of connections.' },
)

/** An entry of `tcpRoutes`. */
export const tcpRouteSchema = object(
  {
    name: optional(
      name({ doc: 'Name in logs and metrics, and identity in the config API.', default: 'its number' }),
    ),
    gateways: optional(gatewayReferences),
    hostnames: optional(
      list(name({ doc: 'Exact, or `*.example.com` for its subdomains.', example: 'db.example.com' }), {
        doc: 'Server names (SNI) of TLS connections of the route, for TLS termination and passthrough.',
        default: 'all connections',
      }),
    ),
    policies: optional(object({ backendTLS }, { doc: 'Default policies of the backends.' })),
    backends: list(backend, {
      doc: 'Destinations; one is chosen per connection, by weight. If it is unreachable, the others are tried. A backend without endpoints resets its share of the connections.',
    }),
  },
  { doc: 'A route of opaque TCP connections.' },
)

export type TcpRouteConfig = Infer<typeof tcpRouteSchema>

/** Checks a TCP route beyond the schema. `backends` is the section of that name. */
export function checkTcpRoute(
  route: TcpRouteConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  route.hostnames?.forEach((hostname, index) => {
    const mistake = hostnameMistake(hostname)
    if (mistake !== undefined) report(['hostnames', index], mistake)
  })
  const tls = route.policies?.backendTLS
  if (tls !== undefined)
    checkBackendTls(tls, (path, message) => report(['policies', 'backendTLS', ...path], message))
  route.backends.forEach((backend, index) => {
    const under =
      (...keys: string[]): ReportIssue =>
      (path, message) =>
        report(['backends', index, ...keys, ...path], message)
    if (backend.policies !== undefined) checkBackendPolicies(backend.policies, under('policies'))
    if (backend.policies?.health?.unhealthyExpression !== undefined)
      under('policies', 'health', 'unhealthyExpression')([], 'is not valid for TCP, which has no responses')
    if (backend.reject !== undefined) return
    if (backend.dynamic !== undefined) {
      checkDynamic(backend.dynamic, connectionTargetVariables, under('dynamic'))
      if (backend.policies?.backendTunnel !== undefined)
        under('policies', 'backendTunnel')([], noDynamicTunnel)
      if (backend.policies?.health !== undefined)
        under('policies', 'health')(
          [],
          'is not supported on dynamic backends, which have any number of hosts',
        )
      return
    }
    if (backend.host !== undefined) {
      checkBackendHost(backend.host, (message) => under('host')([], message))
      return
    }
    const found = findBackend(backend.backend, backends)
    if (found === undefined || !hasServers(found))
      under('backend')([], missingBackend(backend.backend, found))
  })
}
