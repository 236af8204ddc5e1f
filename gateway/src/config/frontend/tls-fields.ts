import { enumeration, list, name, optional } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { keyExchangeGroups } from '../../upstream/connection-config.ts'

export const tlsVersions = ['TLS_V1_2', 'TLS_V1_3'] as const

/** Versions, cipher suites and groups of TLS towards clients. */
export const protocolFields = {
  minTLSVersion: optional(
    enumeration(tlsVersions, { doc: 'Oldest TLS version that is spoken.', default: 'TLS_V1_2' }),
  ),
  maxTLSVersion: optional(
    enumeration(tlsVersions, { doc: 'Newest TLS version that is spoken.', default: 'TLS_V1_3' }),
  ),
  keyExchangeGroups: optional(
    list(
      enumeration(keyExchangeGroups, { doc: 'A group.' }),
      { doc: 'Groups of the key exchange, the preferred first.', default: "OpenSSL's", advanced: true },
      { min: 1, max: keyExchangeGroups.length },
    ),
  ),
  cipherSuites: optional(
    list(name({ doc: "A cipher suite, by OpenSSL's or the standard's name." }), {
      doc: 'The cipher suites that may be used, the preferred first.',
      advanced: true,
    }),
  ),
}

type TlsVersion = (typeof tlsVersions)[number]

/** The versions of TLS, in either spelling. */
type VersionFields = {
  readonly minTLSVersion?: TlsVersion | undefined
  readonly maxTLSVersion?: TlsVersion | undefined
  readonly minTlsVersion?: TlsVersion | undefined
  readonly maxTlsVersion?: TlsVersion | undefined
}

export function tlsVersionsOf(tls: VersionFields): {
  min: TlsVersion | undefined
  max: TlsVersion | undefined
} {
  return { min: tls.minTLSVersion ?? tls.minTlsVersion, max: tls.maxTLSVersion ?? tls.maxTlsVersion }
}

/** Reports contradictory versions. */
export function checkVersions(tls: VersionFields, report: ReportIssue): void {
  const { min, max } = tlsVersionsOf(tls)
  if (min === 'TLS_V1_3' && max === 'TLS_V1_2')
    report(
      [tls.maxTLSVersion === undefined ? 'maxTlsVersion' : 'maxTLSVersion'],
      'must not be older than minTLSVersion',
    )
  if (tls.minTLSVersion !== undefined && tls.minTlsVersion !== undefined)
    report(['minTlsVersion'], 'is the same as minTLSVersion: keep one of them')
  if (tls.maxTLSVersion !== undefined && tls.maxTlsVersion !== undefined)
    report(['maxTlsVersion'], 'is the same as maxTLSVersion: keep one of them')
}
