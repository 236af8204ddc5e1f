import { parseDuration } from '../../lib/duration.ts'
import type { ConnectionSettings } from '../../net/listener/connection-settings.ts'
import { duration, enumeration, type Infer, integer, list, object, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkKeepAlive } from '../../upstream/check.ts'
import { probesOf } from '../../upstream/connection.ts'
import { keepAlive } from '../../upstream/connection-config.ts'
import { checkVersions, protocolFields } from './tls-fields.ts'

/** Fields of `frontendPolicies.http` about connections. */
export const connectionFields = {
  http1MaxHeaders: optional(
    integer(
      { doc: 'Most header lines of an HTTP/1 request; more are 431.', default: 'no limit but 32 KiB' },
      { min: 1, max: 10_000 },
    ),
  ),
  http1IdleTimeout: optional(
    duration({ doc: 'How long an HTTP/1 connection without requests stays open.', default: '75s' }),
  ),
  http2WindowSize: optional(
    integer(
      { doc: 'Flow-control window of an HTTP/2 stream, in bytes.', default: 65_535, advanced: true },
      { min: 1_024, max: 2 ** 31 - 1 },
    ),
  ),
  http2ConnectionWindowSize: optional(
    integer(
      { doc: 'Flow-control window of an HTTP/2 connection, in bytes.', default: 65_535, advanced: true },
      { min: 65_535, max: 2 ** 31 - 1 },
    ),
  ),
  http2FrameSize: optional(
    integer(
      { doc: 'Largest HTTP/2 frame that clients may send, in bytes.', default: 16_384, advanced: true },
      { min: 16_384, max: 2 ** 24 - 1 },
    ),
  ),
  http2MaxHeaderSize: optional(
    integer(
      { doc: 'Largest header of an HTTP/2 request, in bytes; larger ones are refused.', default: 32_768 },
      { min: 1_024, max: 32_768 },
    ),
  ),
  http2KeepaliveInterval: optional(
    duration({
      doc: 'Time between pings on HTTP/2 connections with open streams, at least `1s`.',
      default: 'no pings',
    }),
  ),
  http2KeepaliveTimeout: optional(
    duration({ doc: 'Limit on the response to a ping; without one the connection ends.', default: '20s' }),
  ),
  maxConnectionDuration: optional(
    duration({
      doc: 'Age at which an HTTP connection ends with its pending requests, so that clients of a load balancer distribute over new replicas.',
      default: 'no limit',
    }),
  ),
}

/** `frontendPolicies.tls`. */
export const frontendTlsSchema = object(
  {
    handshakeTimeout: optional(
      duration({
        doc: 'Limit on the ClientHello, and on the rest of a TLS handshake.',
        default: '5s and 10s',
      }),
    ),
    alpn: optional(
      list(
        enumeration(['h2', 'http/1.1'], { doc: 'A protocol.' }),
        { doc: 'Protocols offered by HTTP listeners, the preferred first.', default: 'h2, http/1.1' },
        { min: 1, max: 2 },
      ),
    ),
    minVersion: protocolFields.minTLSVersion,
    maxVersion: protocolFields.maxTLSVersion,
    cipherSuites: protocolFields.cipherSuites,
    keyExchangeGroups: protocolFields.keyExchangeGroups,
  },
  {
    doc: 'TLS of all listeners. Its settings take precedence over those of `tls` of gateways and listeners.',
  },
)

/** `frontendPolicies.tcp`. */
export const frontendTcpSchema = object(
  { keepalives: optional(keepAlive) },
  { doc: 'TCP connections of clients.' },
)

type HttpConfig = { readonly [K in keyof typeof connectionFields]?: Infer<(typeof connectionFields)[K]> }
export type FrontendTlsConfig = Infer<typeof frontendTlsSchema>
type FrontendConfig = {
  readonly http?: HttpConfig | undefined
  readonly tls?: FrontendTlsConfig | undefined
  readonly tcp?: Infer<typeof frontendTcpSchema> | undefined
}

/** Reports values beyond the schema. Paths are relative to `frontendPolicies`. */
export function checkConnections({ http = {}, tls, tcp }: FrontendConfig, report: ReportIssue): void {
  for (const key of ['http2KeepaliveInterval', 'http2KeepaliveTimeout'] as const) {
    const ms = milliseconds(http[key])
    if (ms !== undefined && (ms < 1_000 || ms > longestMs)) report(['http', key], 'must be from 1s to 24d')
  }
  for (const key of ['http1IdleTimeout', 'maxConnectionDuration'] as const) {
    const ms = milliseconds(http[key])
    if (ms !== undefined && (ms === 0 || ms > longestMs))
      report(['http', key], 'must be above 0s, 24d at most')
  }
  if (http.http2KeepaliveTimeout !== undefined && http.http2KeepaliveInterval === undefined)
    report(['http', 'http2KeepaliveTimeout'], 'must be set with http2KeepaliveInterval')
  const handshakeMs = milliseconds(tls?.handshakeTimeout)
  if (handshakeMs !== undefined && (handshakeMs === 0 || handshakeMs > longestHandshakeMs))
    report(['tls', 'handshakeTimeout'], 'must be above 0s, 2m at most')
  if (tls !== undefined)
    checkVersions({ minTLSVersion: tls.minVersion, maxTLSVersion: tls.maxVersion }, (_, message) =>
      report(['tls', 'maxVersion'], message.replace('minTLSVersion', 'minVersion')),
    )
  if (tcp?.keepalives) checkKeepAlive(tcp.keepalives, (path, message) => report(['tcp', ...path], message))
}

/** Longest time of a timer. */
const longestMs = 24 * 86_400_000
const longestHandshakeMs = 120_000

/** Compiles settings of accepted connections; undefined without settings. */
export function compileConnections({ http = {}, tcp }: FrontendConfig): ConnectionSettings | undefined {
  const probes = tcp?.keepalives && probesOf(tcp.keepalives)
  const hasFields = Object.keys(connectionFields).some((key) => Object.hasOwn(http, key))
  if (probes === undefined && !hasFields) return undefined
  return {
    probes,
    maxDurationMs: milliseconds(http.maxConnectionDuration),
    http1: { idleMs: milliseconds(http.http1IdleTimeout), maxHeaders: http.http1MaxHeaders },
    http2: {
      windowSize: http.http2WindowSize,
      connectionWindowSize: http.http2ConnectionWindowSize,
      maxFrameSize: http.http2FrameSize,
      maxHeaderBytes: http.http2MaxHeaderSize,
      pingIntervalMs: milliseconds(http.http2KeepaliveInterval),
      pingTimeoutMs: milliseconds(http.http2KeepaliveTimeout),
    },
  }
}

/** Limit of TLS handshakes in milliseconds; undefined for the default. */
export function handshakeLimitOf(tls: FrontendTlsConfig | undefined): number | undefined {
  return milliseconds(tls?.handshakeTimeout)
}

function milliseconds(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDuration(text)
}
