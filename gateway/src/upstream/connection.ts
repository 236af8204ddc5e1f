import { createHash } from 'node:crypto'
import { milliseconds } from '../lib/duration.ts'
import type { EgressPolicy } from '../net/egress/egress.ts'
import type { UpstreamConnection, UpstreamTls } from '../net/http-client/send.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { readPem } from '../pipeline/pem-source.ts'
import type { PemSource } from '../schema/dsl.ts'
import type { BackendPolicies, BackendTlsConfig } from './config.ts'

/**
 * Compiles connection settings of a backend, with the egress policy of its address. Throws if a file is
 * unreadable.
 */
export function compileConnection(
  { backendTLS, http, tcp }: Pick<BackendPolicies, 'backendTLS' | 'http' | 'tcp'>,
  egress: EgressPolicy,
  context: CompileContext,
): UpstreamConnection {
  const tls = backendTLS && compileBackendTls(backendTLS, context)
  const version = http?.version === 'HTTP/2' ? '2' : undefined
  const connectTimeoutMs = milliseconds(tcp?.connectTimeout)
  if (!tls && version === undefined && connectTimeoutMs === undefined) return { key: egress.key, egress }
  const settings = { tls: tls?.settings, version, connectTimeoutMs, egress } as const
  return { key: `${tls?.key ?? ''} ${version ?? ''} ${connectTimeoutMs ?? ''} ${egress.key}`, ...settings }
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
    }
    return { settings, key: createHash('sha256').update(JSON.stringify(settings)).digest('base64url') }
  })
}
