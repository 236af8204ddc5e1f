import { parseHostPort } from '../../lib/host-port.ts'
import { hostnameMistake } from '../../pipeline/routing/hostnames.ts'
import {
  anyOfShapes,
  boolean,
  duration,
  exactlyOne,
  hostPort,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  type Schema,
} from '../../schema/dsl.ts'

const gateways: Schema<string | string[]> = anyOfShapes(
  [
    name({ doc: 'A gateway, or `<gateway>/<listener>`.' }),
    list(name({ doc: 'A gateway, or `<gateway>/<listener>`.' }), { doc: 'Several.' }, { min: 1 }),
  ],
  {
    doc: 'Gateways to attach to, as `<gateway>` or `<gateway>/<listener>`, of protocol `TCP` or `TLS`.',
    default: 'default',
  },
)

const backendTls = object(
  {
    cert: optional(name({ doc: 'File with the client certificate, PEM.' })),
    key: optional(name({ doc: 'File with its private key, PEM.' })),
    root: optional(
      name({ doc: 'File with the authorities that are trusted, PEM.', default: "the system's authorities" }),
    ),
    hostname: optional(
      name({ doc: 'Name to ask for, which the certificate must bear.', default: 'the host of the backend' }),
    ),
    insecure: optional(boolean({ doc: 'Accept any certificate.', default: false, advanced: true })),
    insecureHost: optional(
      boolean({ doc: 'Accept a certificate for another name.', default: false, advanced: true }),
    ),
  },
  { doc: 'TLS towards the backend. `{}` is TLS with the usual checks.' },
)

const backendPolicies = object(
  {
    backendTLS: optional(backendTls),
    tcp: optional(
      object(
        { connectTimeout: optional(duration({ doc: 'Longest wait for a connection.', default: '10s' })) },
        { doc: 'Limits of connections.' },
      ),
    ),
  },
  { doc: 'How the backend is reached.' },
)

const backend = exactlyOne(
  {
    host: hostPort({ doc: 'Where it listens, as `host:port`.', example: 'db.internal:5432' }),
    backend: name({ doc: 'An entry of `backends` that has a host, as `/<name>`.', example: '/db' }),
  },
  {
    weight: optional(
      integer(
        { doc: 'Share among the weights; 0 gets no connections.', default: 1 },
        { min: 0, max: 1_000_000 },
      ),
    ),
    policies: optional(backendPolicies),
  },
  { doc: 'Where connections go, and how many of them.' },
)

/** An entry of `tcpRoutes`. */
export const tcpRouteSchema = object(
  {
    name: optional(
      name({ doc: 'Name in logs and metrics, and identity in the config API.', default: 'its number' }),
    ),
    gateways: optional(gateways),
    hostnames: optional(
      list(name({ doc: 'Exact, or `*.example.com` for any name below it.', example: 'db.example.com' }), {
        doc: 'Server names (SNI) of TLS connections that the route is for, whether TLS ends here or passes through.',
        default: 'all connections',
      }),
    ),
    policies: optional(
      object(
        { backendTLS: optional(backendTls) },
        { doc: 'Policies of all backends that say nothing themselves.' },
      ),
    ),
    backends: list(backend, {
      doc: 'One is chosen for each connection, by weight. Where it cannot be reached, the others are tried.',
    }),
  },
  { doc: 'Connections that are passed on as they are, without looking into them.' },
)

export type TcpRouteConfig = Infer<typeof tcpRouteSchema>
export type TcpBackendConfig = TcpRouteConfig['backends'][number]
export type BackendTlsConfig = Infer<typeof backendTls>

type Report = (path: (string | number)[], message: string) => void

/** Reports what the schema cannot say. `named` says whether there is an entry of `backends` that has a host. */
export function checkTcpRoute(route: TcpRouteConfig, named: (name: string) => boolean, report: Report): void {
  route.hostnames?.forEach((hostname, index) => {
    const mistake = hostnameMistake(hostname)
    if (mistake !== undefined) report(['hostnames', index], mistake)
  })
  if (route.policies?.backendTLS !== undefined)
    checkBackendTls(route.policies.backendTLS, ['policies', 'backendTLS'], report)
  route.backends.forEach((backend, index) => {
    const path = ['backends', index]
    const tls = backend.policies?.backendTLS
    if (tls !== undefined) checkBackendTls(tls, [...path, 'policies', 'backendTLS'], report)
    if (backend.host !== undefined && parseHostPort(backend.host)?.port === 0)
      report([...path, 'host'], 'needs a port to connect to, got 0')
    if (backend.backend === undefined) return
    if (!backend.backend.startsWith('/'))
      report([...path, 'backend'], `must be "/" and the name of a backend, got "${backend.backend}"`)
    else if (!named(backend.backend.slice(1)))
      report([...path, 'backend'], `there is no backend with a host named "${backend.backend.slice(1)}"`)
  })
}

function checkBackendTls({ cert, key }: BackendTlsConfig, path: (string | number)[], report: Report): void {
  if ((cert === undefined) !== (key === undefined)) report(path, 'cert and key belong together: set both')
}
