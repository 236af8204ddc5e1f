import { parseHostPort } from '../../../lib/address/host-port.ts'
import type { GrpcTarget } from '../../../net/grpc-client.ts'
import { findBackend } from '../../../upstream/config.ts'
import { compileBackendTls } from '../../../upstream/connection.ts'
import { missingBackend, type UpstreamContext } from '../../../upstream/destination.ts'
import type { GlobalRateLimitConfig } from './config.ts'

/** Compiles the target of the service. Throws if a TLS file cannot be read. */
export function limiterTarget(config: GlobalRateLimitConfig, context: UpstreamContext): GrpcTarget {
  const { backend: reference } = config
  if (reference === undefined) return targetAt(config.host, undefined, context.egress.of(config))
  const backend = findBackend(reference, context.backends ?? [])
  if (backend?.host === undefined) throw new Error(missingBackend(reference, backend))
  const tls = backend.policies?.backendTLS
  return targetAt(backend.host, tls && compileBackendTls(tls, context), context.egress.of(backend))
}

function targetAt(
  host: string,
  tls: { settings: GrpcTarget['tls']; key: string } | undefined,
  egress: GrpcTarget['egress'],
): GrpcTarget {
  const address = parseHostPort(host)
  if (address === undefined) throw new Error(`"${host}" is not host:port`)
  return { ...address, tls: tls?.settings, tlsKey: tls?.key ?? '', egress }
}
