import { execFileSync } from 'node:child_process'
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createCertificateAuthority,
  issueServerCertificate,
  renewalTime,
  renewCertificateAuthority,
} from './authority.ts'

const now = Date.UTC(2026, 10, 22, 12)
const dayMs = 86_400_000
const tools = { now, randomBytes }
const names = ['tollgate-controller.tollgate-system.svc', '127.0.0.1', '::1']

describe('a certificate authority', () => {
  it('signs itself for ten years', () => {
    const authority = createCertificateAuthority(tools)
    const certificate = new X509Certificate(authority.certificate)
    expect(certificate.ca).toBe(true)
    expect(certificate.verify(certificate.publicKey)).toBe(true)
    expect(certificate.checkPrivateKey(createPrivateKey(authority.key))).toBe(true)
    expect(certificate.validToDate.getTime()).toBe(now + 3_650 * dayMs)
  })

  it('issues certificates for its names', () => {
    const authority = createCertificateAuthority(tools)
    const issued = issueServerCertificate(authority, names, tools)
    const certificate = new X509Certificate(issued.chain)
    const issuer = new X509Certificate(authority.certificate)
    expect(certificate.checkIssued(issuer)).toBe(true)
    expect(certificate.verify(issuer.publicKey)).toBe(true)
    expect(certificate.ca).toBe(false)
    expect(certificate.checkHost('tollgate-controller.tollgate-system.svc')).toBeDefined()
    expect(certificate.checkHost('other.svc')).toBeUndefined()
    expect(certificate.checkIP('127.0.0.1')).toBeDefined()
    expect(certificate.checkIP('::1')).toBeDefined()
    expect(certificate.validToDate.getTime()).toBe(issued.expiresAt)
    expect(renewalTime(issued)).toBeGreaterThan(now + 59 * dayMs)
    expect(renewalTime(issued)).toBeLessThan(now + 61 * dayMs)
  })

  it('is renewed with its key in its last third, so that old and new certificates verify', () => {
    const authority = createCertificateAuthority(tools)
    expect(renewCertificateAuthority(authority, { ...tools, now: now + 2_000 * dayMs })).toBe(authority)
    const later = { ...tools, now: now + 3_000 * dayMs }
    const renewed = renewCertificateAuthority(authority, later)
    expect(renewed.key).toBe(authority.key)
    const issued = new X509Certificate(issueServerCertificate(renewed, names, later).chain)
    for (const { certificate } of [authority, renewed]) {
      expect(issued.checkIssued(new X509Certificate(certificate))).toBe(true)
    }
  })

  it('is refused with the key of another', () => {
    const { key } = createCertificateAuthority(tools)
    const { certificate } = createCertificateAuthority(tools)
    expect(() => renewCertificateAuthority({ certificate, key }, tools)).toThrow('must be that of its key')
  })

  it.each([['1999-01-01'], ['2049-12-31'], ['2050-01-01'], ['2120-06-01']])(
    'encodes times around %s',
    (date) => {
      const at = Date.parse(date)
      const { certificate } = createCertificateAuthority({ ...tools, now: at })
      expect(new X509Certificate(certificate).validFromDate.getTime()).toBe(at - 3_600_000)
    },
  )

  it('is accepted by OpenSSL in strict mode', () => {
    const current = { ...tools, now: Date.now() }
    const authority = createCertificateAuthority(current)
    const { chain } = issueServerCertificate(authority, names, current)
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-certificates-'))
    try {
      writeFileSync(join(folder, 'ca.pem'), authority.certificate)
      writeFileSync(join(folder, 'server.pem'), chain)
      const options = ['-x509_strict', '-purpose', 'sslserver', '-CAfile', 'ca.pem', 'server.pem']
      expect(execFileSync('openssl', ['verify', ...options], { cwd: folder }).toString()).toContain(': OK')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
