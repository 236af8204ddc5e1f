import {
  boolean,
  duration,
  enumeration,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  pemSource,
} from '../schema/dsl.ts'

/** Names in certificates of backends. */
export const serverNameFields = {
  hostname: optional(
    name({
      doc: 'Server name in the TLS handshake; the certificate must contain it.',
      default: 'the host of the backend',
      example: 'api.internal.example.com',
    }),
  ),
  subjectAltNames: optional(
    list(
      name({ doc: 'A DNS name, an IP address or a URI.' }),
      {
        doc: 'Alternative names: the certificate must contain one, instead of the hostname.',
        advanced: true,
      },
      { min: 1, max: 64 },
    ),
  ),
}

/** Groups of the key exchange of TLS. */
export const keyExchangeGroups = ['X25519', 'P-256', 'P-384', 'X25519_MLKEM768'] as const

/** TLS to a backend. */
export const backendTlsSchema = object(
  {
    cert: optional(pemSource({ doc: 'Client certificate of the gateway, PEM.', holds: 'certificates' })),
    key: optional(pemSource({ doc: 'Private key of `cert`, PEM.', holds: 'privateKey' })),
    root: optional(
      pemSource({
        doc: 'Trusted certificate authorities, PEM.',
        holds: 'certificates',
        default: 'the well-known authorities',
      }),
    ),
    ...serverNameFields,
    insecure: optional(
      boolean({ doc: 'Accepts every certificate. For tests only.', default: false, advanced: true }),
    ),
    insecureHost: optional(
      boolean({
        doc: 'Accepts certificates of trusted authorities for any name.',
        default: false,
        advanced: true,
      }),
    ),
    alpn: optional(
      list(
        name({ doc: 'A protocol.', example: 'h2' }),
        {
          doc: 'Protocols offered by ALPN, the preferred first. With `h2` the backend selects HTTP/2, unless `http.version` is HTTP/1.1.',
          default: 'those of `http.version`',
          advanced: true,
        },
        { min: 1, max: 16 },
      ),
    ),
    keyExchangeGroups: optional(
      list(
        enumeration(keyExchangeGroups, { doc: 'A group.' }),
        { doc: 'Groups of the key exchange, the preferred first.', default: "OpenSSL's", advanced: true },
        { min: 1, max: keyExchangeGroups.length },
      ),
    ),
  },
  { doc: 'TLS to the backend. `{}` trusts the well-known authorities.' },
)

export type BackendTlsConfig = Infer<typeof backendTlsSchema>

/** `http` of a backend. */
export const httpSchema = object(
  {
    requestTimeout: optional(
      duration({
        doc: 'Limit on the wait for the response head, including the connection; 504 on timeout.',
        example: '30s',
        default: '10m',
      }),
    ),
    version: optional(
      enumeration(['HTTP/1.1', 'HTTP/2', '1.1', '2', 'HTTP/2.0'], {
        doc: 'Protocol version: `HTTP/1.1` or `HTTP/2`, also written `1.1` and `2`. `HTTP/2` is negotiated over TLS, and used with prior knowledge otherwise.',
        default: 'HTTP/1.1',
      }),
    ),
  },
  { doc: 'HTTP to the backend.' },
)

/** `tcp.keepalives`. */
export const keepAlive = object(
  {
    enabled: optional(boolean({ doc: 'Whether the gateway sends probes.', default: true })),
    time: optional(duration({ doc: 'Idle time before the first probe, at least `1s`.', default: '3m' })),
    interval: optional(duration({ doc: 'Time between probes, at least `1s`.', default: '3m' })),
    retries: optional(
      integer(
        { doc: 'Unanswered probes before the connection is closed.', default: 9 },
        { min: 1, max: 127 },
      ),
    ),
  },
  { doc: 'TCP keep-alive probes of idle connections. Without it the first probe is after a minute.' },
)

export type KeepAliveConfig = Infer<typeof keepAlive>

/** `tcp` of a backend. */
export const tcpSchema = object(
  {
    keepalives: optional(keepAlive),
    connectTimeout: optional(
      duration({ doc: 'Limit on establishing a connection, including TLS.', default: '10s' }),
    ),
  },
  { doc: 'Connections to the backend.' },
)

export type HttpConfig = Infer<typeof httpSchema>
export type TcpConfig = Infer<typeof tcpSchema>
