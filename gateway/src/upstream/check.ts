import { checkCel } from '../cel/checked.ts'
import { parseHostPort } from '../lib/address/host-port.ts'
import { parseDuration } from '../lib/duration.ts'
import type { ReportIssue } from '../schema/report.ts'
import { affinityRoots, type SessionAffinityConfig } from './affinity/affinity.ts'
import type { BackendPolicies, NamedBackend } from './config.ts'
import type { BackendTlsConfig, KeepAliveConfig } from './connection-config.ts'
import { checkBackendAuth } from './credentials/check.ts'
import { checkHeaderModifier } from './header-modifier.ts'
import { checkBackendTunnel } from './tunnel/config.ts'

/** Checks the `backends` section beyond its schema; `mcp` and `ai` entries have their own checks. */
export function checkNamedBackends(backends: readonly NamedBackend[], report: ReportIssue): void {
  const names = new Set<string>()
  backends.forEach((backend, index) => {
    if (names.has(backend.name)) report([index, 'name'], `another backend is named "${backend.name}"`)
    names.add(backend.name)
    if (backend.host !== undefined)
      checkBackendHost(backend.host, (message) => report([index, 'host'], message))
    backend.endpoints?.forEach(({ host }, at) => {
      checkBackendHost(host, (message) => report([index, 'endpoints', at, 'host'], message))
    })
    const { sessionAffinity } = backend.policies ?? {}
    if (sessionAffinity)
      checkSessionAffinity(sessionAffinity, backend, (path, message) =>
        report([index, 'policies', 'sessionAffinity', ...path], message),
      )
    if (backend.policies) {
      checkBackendPolicies(backend.policies, (path, message) => report([index, 'policies', ...path], message))
    }
  })
}

/** Checks `sessionAffinity` of a backend. */
export function checkSessionAffinity(
  { source }: SessionAffinityConfig,
  { endpoints }: Pick<NamedBackend, 'endpoints'>,
  report: ReportIssue,
): void {
  if (endpoints === undefined) report([], 'must be on a backend with endpoints: it selects one of them')
  checkCel(source, affinityRoots, (message) => report(['source'], message))
}

/** Checks that the port of a backend is connectable. */
export function checkBackendHost(host: string, report: (message: string) => void): void {
  if (parseHostPort(host)?.port === 0) report('port 0 cannot be connected to')
}

export function checkBackendPolicies(policies: BackendPolicies, report: ReportIssue): void {
  const { backendTLS, backendAuth, tcp, backendTunnel, requestHeaderModifier, responseHeaderModifier } =
    policies
  const under =
    (key: string): ReportIssue =>
    (path, message) =>
      report([key, ...path], message)
  if (backendTLS) checkBackendTls(backendTLS, under('backendTLS'))
  if (backendAuth) checkBackendAuth(backendAuth, under('backendAuth'))
  if (backendTunnel) {
    const report = under('backendTunnel')
    checkBackendTunnel(backendTunnel, report)
    checkBackendPolicies(backendTunnel.policies ?? {}, (path, message) =>
      report(['policies', ...path], message),
    )
  }
  if (tcp?.keepalives) checkKeepAlive(tcp.keepalives, under('tcp'))
  if (requestHeaderModifier) checkHeaderModifier(requestHeaderModifier, under('requestHeaderModifier'))
  if (responseHeaderModifier) checkHeaderModifier(responseHeaderModifier, under('responseHeaderModifier'))
}

export function checkBackendTls(tls: BackendTlsConfig, report: ReportIssue): void {
  if (tls.cert !== undefined && tls.key === undefined) report([], 'cert needs its key')
  if (tls.key !== undefined && tls.cert === undefined) report([], 'key needs its cert')
  if (tls.insecure === true && tls.subjectAltNames !== undefined) {
    report(['subjectAltNames'], 'is not checked, because insecure accepts every certificate')
  }
  tls.alpn?.forEach((protocol, index) => {
    if (Buffer.byteLength(protocol) > 255) report(['alpn', index], 'must have at most 255 bytes')
  })
  if (tls.insecure !== true && tls.insecureHost === true && tls.subjectAltNames !== undefined) {
    report(['subjectAltNames'], 'is not checked, because insecureHost accepts every name')
  }
}

/** The longest time of keep-alive probes: 32,767 seconds on Linux. */
const longestKeepAliveMs = 32_767_000

/** Reports times that the system does not support, at `keepalives`. */
export function checkKeepAlive(config: KeepAliveConfig, report: ReportIssue): void {
  for (const key of ['time', 'interval'] as const) {
    const ms = parseDuration(config[key] ?? '1s') ?? 0
    if (ms < 1_000 || ms > longestKeepAliveMs) report(['keepalives', key], 'must be from 1s to 9h')
  }
}
