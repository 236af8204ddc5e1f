import { createHash } from 'node:crypto'
import { parseHostPort } from '../../lib/address/host-port.ts'
import type { ProxyTunnel } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { type BackendAuthConfig, keyOf, placeOf } from '../credentials/config.ts'
import { isCredential } from '../credentials/credential.ts'
import type { BackendTunnelConfig } from './config.ts'

/** Compiles the proxy with a digest of its settings. Throws if a file is unreadable. */
export function compileTunnel(
  config: BackendTunnelConfig,
  context: CompileContext,
  compile: {
    tls(policies: BackendTunnelConfig['policies']): ProxyTunnel['tls']
    probes(policies: BackendTunnelConfig['policies']): ProxyTunnel['probes']
  },
): { readonly key: string; readonly tunnel: ProxyTunnel } {
  const { proxy, policies } = config
  const address = parseHostPort(proxy.host)
  if (address === undefined) throw new Error(`"${proxy.host}" is not host:port`)
  const egress = context.egress.of(config)
  const tunnel: ProxyTunnel = {
    ...address,
    tls: compile.tls(policies),
    authorization: authorizationOf(policies?.backendAuth, context),
    egress,
    probes: compile.probes(policies),
  }
  const settings = JSON.stringify({ ...tunnel, egress: egress.key })
  return { key: createHash('sha256').update(settings).digest('base64url'), tunnel }
}

/** The value of `proxy-authorization`, by default a bearer token. */
function authorizationOf(
  config: BackendAuthConfig | undefined,
  { readFile }: CompileContext,
): string | undefined {
  const key = config && keyOf(config)
  if (config === undefined || key === undefined) return undefined
  const credential = typeof key === 'string' ? key : readFile(key.file).trim()
  if (!isCredential(credential))
    throw new Error(
      'backendTunnel.policies.backendAuth is not a credential: expected printable ASCII on one line',
    )
  const { prefix = '' } = placeOf(config)?.header ?? { prefix: 'Bearer ' }
  return prefix + credential
}
