import { hostnameMistake } from '../../pipeline/routing/hostnames.ts'
import { exactlyOne, hostPort, type Infer, integer, list, name, object, optional } from '../../schema/dsl.ts'
import { gatewayReferences } from '../../schema/gateway-references.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendHost, checkBackendPolicies, checkBackendTls } from '../../upstream/check.ts'
import { backendPolicyFields, findBackend, type NamedBackend } from '../../upstream/config.ts'
import { missingBackend } from '../../upstream/destination.ts'

const { backendTLS, tcp, health } = backendPolicyFields

const backend = exactlyOne(
  {
    host: hostPort({ doc: 'Where it listens, as `host:port`.', example: 'db.internal:5432' }),
    backend: name({ doc: 'An entry of `backends` that has a host, as `/<name>`.', example: '/db' }),
  },
  {
    weight: optional(
      integer(
        { doc: 'Share among the weights; 0 gets no connections.', default: 1 },
        { min: 0, max: 1_000_000 },
      ),
    ),
    policies: optional(object({ backendTLS, tcp, health }, { doc: 'How the backend is reached.' })),
  },
  { doc: 'Where connections go, and how many of them.' },
)

/** An entry of `tcpRoutes`. */
export const tcpRouteSchema = object(
  {
    name: optional(
      name({ doc: 'Name in logs and metrics, and identity in the config API.', default: 'its number' }),
    ),
    gateways: optional(gatewayReferences),
    hostnames: optional(
      list(name({ doc: 'Exact, or `*.example.com` for any name below it.', example: 'db.example.com' }), {
        doc: 'Server names (SNI) of TLS connections that the route is for, whether TLS ends here or passes through.',
        default: 'all connections',
      }),
    ),
    policies: optional(
      object({ backendTLS }, { doc: 'What holds for backends that do not say it themselves.' }),
    ),
    backends: list(backend, {
      doc: 'One is chosen for each connection, by weight. Where it cannot be reached, the others are tried.',
    }),
  },
  { doc: 'Connections that are passed on as they are, without looking into them.' },
)

export type TcpRouteConfig = Infer<typeof tcpRouteSchema>

/** Reports what the schema cannot say. `backends` is the section of that name. */
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
    if (backend.host !== undefined) {
      checkBackendHost(backend.host, (message) => under('host')([], message))
      return
    }
    const found = findBackend(backend.backend, backends)
    if (found?.host === undefined) under('backend')([], missingBackend(backend.backend, found))
  })
}
