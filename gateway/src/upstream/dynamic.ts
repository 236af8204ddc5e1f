import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import { CelEvaluationError } from '../cel/failure.ts'
import { parseCidr } from '../lib/address/cidr.ts'
import { type HostPort, parseHostPort } from '../lib/address/host-port.ts'
import { compileClientChosenPolicy } from '../net/egress/client-chosen.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { cel, type Infer, list, name, object, optional } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** `dynamic` of a route or TCP route: the client chooses the destination. */
export const dynamicSchema = object(
  {
    target: optional(
      cel({
        doc: 'Destination as `host:port`, in place of that of the client. Requests have the variables of rules, connections `source` and `destination`.',
        example: 'destination.hostname + ":8443"',
      }),
    ),
    allowNetworks: optional(
      list(
        name({ doc: 'An address, or a range such as `10.0.0.0/8`.', example: '10.1.0.0/16' }),
        {
          doc: 'Private and loopback addresses that are permitted besides public ones.',
          default: 'none',
        },
        { max: 1_000 },
      ),
    ),
  },
  {
    doc: 'The host of the request, or the server name (SNI) of the connection, is the destination. Only public addresses are permitted.',
  },
)

/** Variables of `target` on requests, after the policies of the route, and on connections. */
export const requestTargetVariables: ReadonlySet<string> = new Set([
  ...['now', 'request', 'source', 'destination', 'jwt', 'basicAuth', 'apiKey', 'metadata'],
  ...['extAuthz', 'extauthz', 'extProc', 'extproc'],
])
export const connectionTargetVariables: ReadonlySet<string> = new Set(['now', 'source', 'destination'])

export type DynamicConfig = Infer<typeof dynamicSchema>

/** The proxy resolves names, so that the addresses of destinations cannot be restricted. */
export const noDynamicTunnel =
  'must not be set on a dynamic backend: the proxy would resolve names that clients choose'

/** Reports invalid ranges, and a `target` that does not compile. */
export function checkDynamic(
  { target, allowNetworks }: DynamicConfig,
  variables: ReadonlySet<string>,
  report: ReportIssue,
): void {
  if (target !== undefined) checkCel(target, variables, (message) => report(['target'], message))
  allowNetworks?.forEach((text, index) => {
    if (parseCidr(text) === undefined)
      report(['allowNetworks', index], `expected an IP address or a range such as 10.0.0.0/8, got "${text}"`)
  })
}

/** Ports of this gateway: no dynamic destination may be one of them on this machine. */
export type OwnPorts = { ports: ReadonlySet<number> }

/** Ports of the active configuration, over reloads. */
export function ownPorts({ retained }: CompileContext): OwnPorts {
  return retained('listening ports', () => ({ ports: new Set<number>() }))
}

/** Restricts the destinations of a configuration node to those that clients may choose. */
export function withClientChosenEgress<C extends CompileContext>(
  { allowNetworks = [] }: DynamicConfig,
  context: C,
): C {
  const { egress } = context
  const own = ownPorts(context)
  const options = {
    allowed: allowNetworks.flatMap((text) => parseCidr(text) ?? []),
    isOwnPort: (port: number) => own.ports.has(port),
  }
  return {
    ...context,
    egress: { ...egress, of: (node) => compileClientChosenPolicy(egress.of(node), options) },
  }
}

/** Host and port of a destination; undefined if there is none. */
export type ReadTarget = (variables: object, chosen: () => HostPort | undefined) => HostPort | undefined

/** Compiles the destination: that of `target`, else the one that the client has chosen. */
export function compileTarget({ target }: DynamicConfig, variables: ReadonlySet<string>): ReadTarget {
  if (target === undefined) return (_, chosen) => chosen()
  const program = compileCheckedCel(target, variables)
  return (facts) => {
    try {
      const value = program.evaluate(facts)
      return typeof value === 'string' ? connectable(parseHostPort(value)) : undefined
    } catch (error) {
      if (error instanceof CelEvaluationError) return undefined
      throw error
    }
  }
}

/** Parses the host of a request, with or without port. */
export function parseAuthority(authority: string, defaultPort: number): HostPort | undefined {
  const withPort = /(?:^|[^:]):\d+$/.test(authority) || /\]:\d+$/.test(authority)
  return connectable(parseHostPort(withPort ? authority : `${authority}:${defaultPort}`))
}

function connectable(address: HostPort | undefined): HostPort | undefined {
  return address === undefined || address.port === 0 ? undefined : address
}
