import { gatewayPolicyFields } from '../../policies/registry/schema.ts'
import {
  enumeration,
  type Infer,
  list,
  map,
  name,
  object,
  optional,
  pemSource,
  port,
} from '../../schema/dsl.ts'
import { protocolFields, tlsVersions } from '../frontend/tls-fields.ts'
import { tunnelFields } from '../tunnels/tunnels.ts'

/** `tls` of a gateway or listener. */
export const tlsSchema = object(
  {
    mode: optional(
      enumeration(['static', 'dynamicCa'], {
        doc: '`static`: `cert` is the certificate of the hosts. `dynamicCa`: `cert` is an authority, which issues a certificate for each server name; connections without a server name are refused.',
        default: 'static',
      }),
    ),
    cert: optional(
      pemSource({
        doc: 'Certificate chain, PEM.',
        holds: 'certificates',
        example: '/etc/tollgate/tls.crt',
      }),
    ),
    key: optional(
      pemSource({
        doc: 'Private key, PEM.',
        holds: 'privateKey',
        example: '/etc/tollgate/tls.key',
      }),
    ),
    root: optional(
      pemSource({
        doc: 'Authorities, PEM: clients must then show a certificate signed by one of them.',
        holds: 'certificates',
        advanced: true,
      }),
    ),
    ...protocolFields,
    minTlsVersion: optional(enumeration(tlsVersions, { doc: 'Alias of `minTLSVersion`.', advanced: true })),
    maxTlsVersion: optional(enumeration(tlsVersions, { doc: 'Alias of `maxTLSVersion`.', advanced: true })),
  },
  { doc: 'TLS towards clients. Files are watched; a changed certificate serves the next connection.' },
)

export const protocols = ['HTTP', 'HTTPS', 'TCP', 'TLS'] as const

const protocol = enumeration(protocols, {
  doc: '`HTTP` and `HTTPS` carry routes, `TCP` and `TLS` carry tcpRoutes. TLS without `tls` passes through, routed by server name.',
  default: 'HTTP, or HTTPS where tls is set',
})

const listener = object(
  {
    name: optional(
      name({ doc: 'Name that routes attach to, as `<gateway>/<listener>`.', default: 'its number, from 0' }),
    ),
    hostname: optional(
      name({
        doc: 'Host this listener is for: exact, or `*.example.com` for any name below it. The most specific listener serves a request.',
        default: 'all hosts',
        example: '*.example.com',
      }),
    ),
    protocol: optional(protocol),
    tls: optional(tlsSchema),
    ...gatewayPolicyFields,
  },
  { doc: 'A part of a gateway with its own host name, certificate and policies.' },
)

const gateway = object(
  {
    port: port({ doc: 'Port that the gateway listens on.', example: 8080 }),
    protocol: optional(protocol),
    tls: optional(tlsSchema),
    listeners: optional(
      list(listener, {
        doc: 'Listeners by host name. With listeners, `port` is the only other field of the gateway.',
      }),
    ),
    ...tunnelFields,
    ...gatewayPolicyFields,
  },
  { doc: 'An address with routes. Its policies apply to all of them.' },
)

export const gatewaysSchema = map(gateway, {
  doc: 'Addresses by name. Routes without `gateways`, and `llm`, `mcp` and `ui` without an address, attach to the one named `default`.',
  example: { default: { port: 8080 } },
})

export type GatewayConfig = Infer<typeof gateway>
export type ListenerConfig = Infer<typeof listener>
export type TlsConfig = Infer<typeof tlsSchema>
export type Protocol = (typeof protocols)[number]
