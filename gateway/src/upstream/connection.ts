import { createHash } from 'node:crypto'
import { milliseconds } from '../lib/duration.ts'
import type { EgressPolicy } from '../net/egress/egress.ts'
import type { UpstreamConnection, UpstreamTls } from '../net/http-client/send.ts'
import type { KeepAliveProbes } from '../net/tcp/keep-alive.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { readPem } from '../pipeline/pem-source.ts'
import type { PemSource } from '../schema/dsl.ts'
import type { BackendTlsConfig, HttpConfig, KeepAliveConfig, TcpConfig } from './connection-config.ts'
import type { BackendTunnelConfig } from './tunnel/config.ts'
import { compileTunnel } from './tunnel/tunnel.ts'

/** The policies of a backend that determine its connections. */
export type ConnectionPolicies = {
  readonly backendTLS?: BackendTlsConfig | undefined
  readonly http?: HttpConfig | undefined
  readonly tcp?: TcpConfig | undefined
  readonly backendTunnel?: BackendTunnelConfig | undefined
}

/**
 * Compiles connection settings of a backend, with the egress policy of its address. Throws if a file is
 * unreadable.
 */
export function compileConnection(
  { backendTLS, http, tcp, backendTunnel }: ConnectionPolicies,
  egress: EgressPolicy,
  context: CompileContext,
): UpstreamConnection {
  const tls = backendTLS && compileBackendTls(backendTLS, context)
  const version = versionOf({ backendTLS, http })
  const connectTimeoutMs = milliseconds(tcp?.connectTimeout)
  const probes = tcp?.keepalives && probesOf(tcp.keepalives)
  const proxy = backendTunnel && compileProxy(backendTunnel, context)
  const isDefault = !tls && version === undefined && connectTimeoutMs === undefined && probes === undefined
  if (isDefault && proxy === undefined) return { key: egress.key, egress }
  const settings: Omit<UpstreamConnection, 'key'> = {
    ...{ tls: tls?.settings, version, connectTimeoutMs, probes, egress },
    ...(proxy === undefined ? {} : { tunnel: proxy.tunnel }),
  }
  const parts = [
    ...[tls?.key, version, connectTimeoutMs, egress.key, probes && JSON.stringify(probes)],
    ...(proxy === undefined ? [] : [`by ${proxy.key}`]),
  ]
  return { key: parts.map((part) => part ?? '').join(' '), ...settings }
}

/** Compiles the proxy of connections to a backend. Throws if a file is unreadable. */
export function compileProxy(config: BackendTunnelConfig, context: CompileContext) {
  return compileTunnel(config, context, {
    tls: (policies) => policies?.backendTLS && compileBackendTls(policies.backendTLS, context).settings,
    probes: (policies) => policies?.tcp?.keepalives && probesOf(policies.tcp.keepalives),
  })
}

/** The version of HTTP: the configured one, else HTTP/2 if it is offered by ALPN. */
function versionOf({ backendTLS, http }: ConnectionPolicies): UpstreamConnection['version'] {
  const isHttp2 =
    http?.version === undefined ? backendTLS?.alpn?.includes('h2') === true : http.version.includes('2')
  return isHttp2 ? '2' : undefined
}

/** Probes of a connection. */
export function probesOf({
  enabled = true,
  time = '3m',
  interval = '3m',
  retries = 9,
}: KeepAliveConfig): KeepAliveProbes {
  if (!enabled) return { kind: 'off' }
  return { kind: 'on', delayMs: milliseconds(time) ?? 0, intervalMs: milliseconds(interval), count: retries }
}

/**
 * Compiles TLS settings of a backend: PEM texts, and a digest that identifies them without revealing
 * secrets.
 */
export function compileBackendTls(
  config: BackendTlsConfig,
  context: CompileContext,
): { settings: UpstreamTls; key: string } {
  return context.cached(config, 'backend TLS', () => {
    const read = (source: PemSource | undefined) =>
      source === undefined ? undefined : readPem(source, context)
    const settings: UpstreamTls = {
      ca: read(config.root),
      cert: read(config.cert),
      key: read(config.key),
      serverName: config.hostname,
      names: config.subjectAltNames,
      insecure: config.insecure === true ? 'any' : config.insecureHost === true ? 'any-name' : undefined,
      alpn: config.alpn,
      groups: config.keyExchangeGroups?.map((group) => group.replace('_', '')),
    }
    return { settings, key: createHash('sha256').update(JSON.stringify(settings)).digest('base64url') }
  })
}
