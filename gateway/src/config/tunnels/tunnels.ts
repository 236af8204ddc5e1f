import { compileCidrs, parseCidr } from '../../lib/address/cidr.ts'
import { addressScope } from '../../lib/address/scope.ts'
import type { ProxyProtocol } from '../../net/listener/proxy-protocol.ts'
import { enumeration, type Infer, list, name, object, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'

const tunnelProtocols = ['direct', 'connect', 'proxy', 'hboneWaypoint', 'hboneGateway'] as const

/** Fields of a gateway, and of a port in `binds`, about connections inside others. */
export const tunnelFields = {
  mode: optional(
    enumeration(['standard', 'internal'], {
      doc: '`internal` opens no port: the gateway serves connections of CONNECT requests to its port only. Port 0 then stands for every port that no other gateway has.',
      default: 'standard',
      advanced: true,
    }),
  ),
  tunnelProtocol: optional(
    enumeration(tunnelProtocols, {
      doc: '`connect` accepts CONNECT requests, whose connections continue on the gateway with the requested port. `proxy` requires PROXY protocol headers of version 2 in front of connections. HBONE is not supported.',
      default: 'direct',
      advanced: true,
    }),
  ),
}

/** `frontendPolicies.proxyProtocol`. */
export const proxyProtocolSchema = object(
  {
    version: optional(
      enumeration(['v1', 'v2', 'all'], { doc: 'Accepted versions of the header.', default: 'v2' }),
    ),
    mode: optional(
      enumeration(['strict', 'optional'], {
        doc: '`strict` closes connections without a header.',
        default: 'strict',
      }),
    ),
    trustedPeers: optional(
      list(name({ doc: 'An address, or a range such as `10.0.0.0/8`.', example: '10.0.0.0/8' }), {
        doc: 'Peers whose headers are accepted.',
        default: 'http.trustedProxies, or without them private and loopback addresses',
      }),
    ),
  },
  {
    doc: 'PROXY protocol headers on all listeners: load balancers in front report the address of the client, which is then `source.address`.',
  },
)

export type ProxyProtocolConfig = Infer<typeof proxyProtocolSchema>

/** The setting in either spelling. */
export function proxyProtocolOf(frontend: {
  readonly proxyProtocol?: ProxyProtocolConfig | undefined
  readonly proxy?: ProxyProtocolConfig | undefined
}): ProxyProtocolConfig | undefined {
  return frontend.proxyProtocol ?? frontend.proxy
}

/** Reports invalid ranges, and both spellings. Paths are relative to `frontendPolicies`. */
export function checkProxyProtocol(
  frontend: Parameters<typeof proxyProtocolOf>[0],
  report: ReportIssue,
): void {
  if (frontend.proxyProtocol !== undefined && frontend.proxy !== undefined)
    report(['proxy'], 'is the same as proxyProtocol: keep one of them')
  for (const key of ['proxyProtocol', 'proxy'] as const) {
    frontend[key]?.trustedPeers?.forEach((text, index) => {
      if (parseCidr(text) === undefined)
        report(
          [key, 'trustedPeers', index],
          `expected an IP address or a range such as 10.0.0.0/8, got "${text}"`,
        )
    })
  }
}

/** The fields of a gateway that matter here. */
type TunnelGateway = { readonly [K in keyof typeof tunnelFields]?: Infer<(typeof tunnelFields)[K]> } & {
  readonly port: number
}

/** Reports tunnels that this product does not support, and settings without effect. */
export function checkTunnels(gateways: Readonly<Record<string, TunnelGateway>>, report: ReportIssue): void {
  let everyPort: string | undefined
  for (const [gateway, config] of Object.entries(gateways)) {
    const { mode, tunnelProtocol, port } = config
    const at = (key: string, message: string) => report(['gateways', gateway, key], message)
    if (tunnelProtocol?.startsWith('hbone') === true)
      at(
        'tunnelProtocol',
        `agentgateway's ${tunnelProtocol} is not supported: use TLS with client certificates`,
      )
    if (mode !== 'internal') continue
    if (tunnelProtocol !== undefined && tunnelProtocol !== 'direct')
      at('tunnelProtocol', 'must not be set with mode internal, which accepts no connections of its own')
    if (port !== 0) continue
    if (everyPort !== undefined) at('port', `${everyPort} serves every port already`)
    everyPort ??= gateway
  }
}

/** Compiles the handling of PROXY protocol headers; undefined reads none. */
export function compileProxyProtocol(
  configured: ProxyProtocolConfig | undefined,
  tunnelProtocol: string | undefined,
  trustedProxies: readonly string[] | undefined,
): ProxyProtocol | undefined {
  if (configured === undefined && tunnelProtocol !== 'proxy') return undefined
  const { version = 'v2', mode = 'strict', trustedPeers = trustedProxies } = configured ?? {}
  const ranges = trustedPeers?.flatMap((text) => parseCidr(text) ?? [])
  return {
    versions: version,
    isRequired: mode === 'strict',
    isTrusted: ranges === undefined ? (address) => addressScope(address) !== 'public' : compileCidrs(ranges),
  }
}
