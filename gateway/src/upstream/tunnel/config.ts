import { parseHostPort } from '../../lib/address/host-port.ts'
import { hostPort, type Infer, object, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { backendTlsSchema, tcpSchema } from '../connection-config.ts'
import { backendAuthSchema, placeOf } from '../credentials/config.ts'

/** `backendTunnel`: connections through an HTTP proxy. */
export const backendTunnelSchema = object(
  {
    proxy: object(
      { host: hostPort({ doc: 'Host and port of the proxy.', example: 'proxy.internal:3128' }) },
      { doc: 'An HTTP proxy.' },
    ),
    policies: optional(
      object(
        {
          backendTLS: optional(backendTlsSchema),
          backendAuth: optional(backendAuthSchema),
          tcp: optional(tcpSchema),
        },
        {
          doc: 'Policies of connections to the proxy. The key of `backendAuth` is sent in `proxy-authorization`, by default as a bearer token; `location.header.prefix` selects another scheme.',
        },
      ),
    ),
  },
  {
    doc: 'Connects through an HTTP proxy with CONNECT. The proxy resolves the name of the backend; TLS of the backend is inside of the tunnel.',
  },
)

export type BackendTunnelConfig = Infer<typeof backendTunnelSchema>

/** Reports an unusable proxy address, and credentials that no proxy receives. */
export function checkBackendTunnel({ proxy, policies = {} }: BackendTunnelConfig, report: ReportIssue): void {
  if (parseHostPort(proxy.host)?.port === 0) report(['proxy', 'host'], 'port 0 cannot be connected to')
  const { backendAuth, tcp } = policies
  if (tcp?.connectTimeout !== undefined)
    report(['policies', 'tcp', 'connectTimeout'], 'is not supported: set tcp.connectTimeout of the backend')
  if (backendAuth === undefined) return
  const place = placeOf(backendAuth)
  if (backendAuth.key === undefined)
    report(['policies', 'backendAuth'], 'must be a key: a proxy receives no other credential')
  else if (place !== undefined && place.header === undefined)
    report(['policies', 'backendAuth'], 'must have a header as location')
}
