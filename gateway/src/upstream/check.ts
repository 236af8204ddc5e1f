import { parseHostPort } from '../lib/address/host-port.ts'
import { isToken } from '../lib/http-token.ts'
import type { ReportIssue } from '../schema/report.ts'
import { isCredential } from './auth.ts'
import type { BackendAuthConfig, BackendPolicies, BackendTlsConfig, NamedBackend } from './config.ts'
import { checkHeaderModifier } from './header-modifier.ts'

/** Checks the `backends` section beyond its schema; `mcp` and `ai` entries have their own checks. */
export function checkNamedBackends(backends: readonly NamedBackend[], report: ReportIssue): void {
  const names = new Set<string>()
  backends.forEach((backend, index) => {
    if (names.has(backend.name)) report([index, 'name'], `another backend is named "${backend.name}"`)
    names.add(backend.name)
    if (backend.host !== undefined)
      checkBackendHost(backend.host, (message) => report([index, 'host'], message))
    backend.endpoints?.forEach(({ host }, at) => {
      checkBackendHost(host, (message) => report([index, 'endpoints', at, 'host'], message))
    })
    if (backend.policies) {
      checkBackendPolicies(backend.policies, (path, message) => report([index, 'policies', ...path], message))
    }
  })
}

/** Checks that the port of a backend is connectable. */
export function checkBackendHost(host: string, report: (message: string) => void): void {
  if (parseHostPort(host)?.port === 0) report('port 0 cannot be connected to')
}

export function checkBackendPolicies(policies: BackendPolicies, report: ReportIssue): void {
  const { backendTLS, backendAuth, requestHeaderModifier, responseHeaderModifier } = policies
  const under =
    (key: string): ReportIssue =>
    (path, message) =>
      report([key, ...path], message)
  if (backendTLS) checkBackendTls(backendTLS, under('backendTLS'))
  if (backendAuth) checkBackendAuth(backendAuth, under('backendAuth'))
  if (requestHeaderModifier) checkHeaderModifier(requestHeaderModifier, under('requestHeaderModifier'))
  if (responseHeaderModifier) checkHeaderModifier(responseHeaderModifier, under('responseHeaderModifier'))
}

export function checkBackendTls(tls: BackendTlsConfig, report: ReportIssue): void {
  if (tls.cert !== undefined && tls.key === undefined) report([], 'cert needs its key')
  if (tls.key !== undefined && tls.cert === undefined) report([], 'key needs its cert')
  if (tls.insecure === true && tls.subjectAltNames !== undefined) {
    report(['subjectAltNames'], 'is not checked, because insecure accepts every certificate')
  }
  if (tls.insecure !== true && tls.insecureHost === true && tls.subjectAltNames !== undefined) {
    report(['subjectAltNames'], 'is not checked, because insecureHost accepts every name')
  }
}

export function checkBackendAuth(auth: BackendAuthConfig, report: ReportIssue): void {
  if (typeof auth.key === 'string' && !isCredential(auth.key)) {
    report(['key'], 'not a credential: expected printable ASCII without spaces')
  }
  const header = auth.location?.header
  if (header === undefined) return
  if (!isToken(header.name)) {
    report(['location', 'header', 'name'], `not a header name: "${header.name}"`)
  }
  if (header.prefix !== undefined && !/^[\x20-\x7e]*$/.test(header.prefix)) {
    report(['location', 'header', 'prefix'], 'expected printable ASCII')
  }
}
