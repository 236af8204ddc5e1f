import { parseHostPort } from '../../lib/address/host-port.ts'
import { type Infer, integer, name } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'

/** Replacement of the host, the port or both. */
export const authorityFields = {
  full: name({ doc: 'Host with an optional port.', example: 'api.example.com:8443' }),
  host: name({ doc: 'Host without a port.', example: 'api.example.com' }),
  port: integer({ doc: 'Port only; the host is unchanged.', example: 8443 }, { min: 1, max: 65_535 }),
}

type Fields = { [Name in keyof typeof authorityFields]: Infer<(typeof authorityFields)[Name]> }

export type AuthorityChange = {
  [Name in keyof Fields]: Pick<Fields, Name> & { [Other in Exclude<keyof Fields, Name>]?: undefined }
}[keyof Fields]

export type Authority = {
  /** With brackets for an IPv6 address. */
  host: string
  port: number | undefined
}

const hostForm = /^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])$/
const maxHostLength = 300

/** Reports invalid authorities. */
export function checkAuthority(change: AuthorityChange, report: ReportIssue) {
  if (change.full !== undefined && splitAuthority(change.full) === undefined) {
    report(['full'], `expected host or host:port, got "${change.full}"`)
  }
  if (change.host !== undefined && !hostForm.test(change.host)) {
    report(['host'], `expected a host without a port, got "${change.host}"`)
  }
}

/** Returns host and port of a `host` header, or undefined if it is malformed. */
export function splitAuthority(text: string): Authority | undefined {
  if (text.length > maxHostLength) return undefined
  if (hostForm.test(text)) return { host: text, port: undefined }
  const parsed = parseHostPort(text)
  if (parsed === undefined) return undefined
  const { host, port } = parsed
  return { host: host.includes(':') ? `[${host}]` : host, port }
}

const defaultPorts = { http: 80, https: 443 } as const

/** Formats an authority without the default port of the scheme. */
export function authorityText({ host, port }: Authority, scheme: 'http' | 'https'): string {
  return port === undefined || port === defaultPorts[scheme] ? host : `${host}:${port}`
}
