import { hostnameMistake, normaliseHostname } from '../../pipeline/routing/hostnames.ts'
import { checkGatewayPolicies } from '../../policies/registry/check.ts'
import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkVersions } from '../frontend/tls-fields.ts'
import { checkTunnels } from '../tunnels/tunnels.ts'
import { carriesHttp, type Gateways, type ListenerPlan, listenersOf } from './attachments.ts'
import type { GatewayConfig, TlsConfig } from './gateway-config.ts'

/** Checks rules beyond the schema on gateways. Paths are relative to the root, with `binds` as `gateways`. */
export function checkGateways(gateways: Gateways, report: ReportIssue): void {
  checkTunnels(gateways, report)
  for (const [name, gateway] of Object.entries(gateways)) {
    checkOne(name, gateway, (path, message) => report(['gateways', name, ...path], message))
    const listeners = listenersOf(name, gateway)
    checkTogether(listeners, report)
    if (gateway.tunnelProtocol === 'connect') checkProxyTls(listeners, report)
    for (const listener of listeners) checkListener(listener, report)
  }
}

function checkOne(name: string, gateway: GatewayConfig, report: ReportIssue): void {
  if (name.includes('/')) report([], 'must not contain a slash, which separates gateway and listener')
  if (gateway.listeners === undefined) return
  for (const key of Object.keys(gateway)) {
    if (['port', 'listeners', 'mode', 'tunnelProtocol'].includes(key)) continue
    report([key], `belongs in the listeners: a gateway with listeners has no other field than port`)
  }
}

/** Checks the listeners of one port, which share protocol and TLS until the host is known. */
function checkTogether(listeners: readonly ListenerPlan[], report: ReportIssue): void {
  const [first, ...rest] = listeners
  if (first === undefined) return
  const names = new Set<string>([first.name])
  const hosts = new Set<string>([hostKey(first)])
  for (const listener of rest) {
    if (names.has(listener.name))
      report([...listener.path, 'name'], `another listener is named "${listener.name}"`)
    if (hosts.has(hostKey(listener))) {
      const which = listener.hostname === undefined ? 'without a hostname' : `for ${listener.hostname}`
      report(listener.path, `another listener of this gateway is ${which} too`)
    }
    names.add(listener.name)
    hosts.add(hostKey(listener))
    if (listener.protocol !== first.protocol) {
      report(
        [...listener.path, 'protocol'],
        `listeners of one port must have the same protocol; the first has ${first.protocol}, this one ${listener.protocol}`,
      )
    }
  }
}

/** Checks that a proxy reads the requests of all its listeners. */
function checkProxyTls(listeners: readonly ListenerPlan[], report: ReportIssue): void {
  if (listeners.every(({ tls }) => tls === undefined)) return
  for (const { path, tls } of listeners) {
    if (tls === undefined)
      report(path, 'tls must be set for all listeners with tunnelProtocol connect, or for none')
  }
}

function hostKey({ hostname }: ListenerPlan): string {
  return normaliseHostname(hostname)
}

function checkListener(listener: ListenerPlan, report: ReportIssue): void {
  const { path, protocol, tls, hostname } = listener
  const under =
    (...prefix: Path): ReportIssue =>
    (inner, message) =>
      report([...path, ...prefix, ...inner], message)
  if (tls !== undefined) checkTls(tls, under('tls'))
  if (protocol === 'HTTPS' && tls === undefined) report(path, 'protocol HTTPS requires tls')
  if (protocol === 'HTTP' && tls !== undefined)
    report([...path, 'protocol'], 'protocol must be HTTPS or TLS with tls')
  if (protocol === 'TCP' && tls !== undefined)
    report([...path, 'protocol'], 'protocol must be TLS for TCP with tls')
  const mistake = hostname === undefined ? undefined : hostnameMistake(hostname)
  if (mistake !== undefined) report([...path, 'hostname'], mistake)
  if (hostname !== undefined && protocol === 'TCP') {
    report([...path, 'hostname'], 'plain TCP has no host name')
  }
  if (carriesHttp(listener)) checkGatewayPolicies(listener.config, under())
  else checkNoPolicies(listener, report)
}

/** Reports missing files and contradictory versions. */
export function checkTls(tls: TlsConfig, report: ReportIssue): void {
  if (tls.cert === undefined || tls.key === undefined) report([], 'cert and key are required')
  checkVersions(tls, report)
}

const ofTransport = new Set([
  ...['name', 'port', 'hostname', 'protocol', 'tls', 'listeners', 'mode', 'tunnelProtocol'],
])

function checkNoPolicies({ config, path }: ListenerPlan, report: ReportIssue): void {
  for (const key of Object.keys(config)) {
    if (!ofTransport.has(key))
      report([...path, key], 'is only valid for HTTP: TCP and TLS gateways do not read requests')
  }
}
