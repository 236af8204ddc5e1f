import { type HostPort, parseHostPort } from '../../lib/address/host-port.ts'
import { parseSocketPath } from '../../lib/address/socket-path.ts'
import { serviceAddress } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendHost } from '../check.ts'
import type { BackendPolicies } from '../config.ts'

/** `host` of a service that policies call: `host:port`, or `unix:/path` in the configuration file. */
export const serviceHostSchema = serviceAddress({
  doc: 'Host and port of the service, or `unix:/path` of a Unix domain socket, which only the configuration file may name.',
  example: 'localhost:8080',
})

/** Address of a service. Requests over a socket have the authority `localhost`. */
export type ServiceAddress = HostPort & { readonly socketPath?: string | undefined }

/** Parses `host:port` or `unix:/path`. Undefined for anything else. */
export function parseServiceAddress(text: string): ServiceAddress | undefined {
  const socketPath = parseSocketPath(text)
  return socketPath === undefined ? parseHostPort(text) : { host: 'localhost', port: 0, socketPath }
}

/** Reports port 0, and a socket with a proxy, at the fields of a service. */
export function checkServiceHost(
  { host, policies }: { host?: string | undefined; policies?: BackendPolicies | undefined },
  report: ReportIssue,
): void {
  if (host === undefined) return
  checkBackendHost(host, (message) => report(['host'], message))
  if (policies?.backendTunnel !== undefined && parseSocketPath(host) !== undefined)
    report(
      ['policies', 'backendTunnel'],
      'does not apply to a socket: remove backendTunnel, or use host:port',
    )
}
