import { execFileSync } from 'node:child_process'
import { randomBytes, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createDynamicTls } from './dynamic-ca.ts'

const dayMs = 86_400_000

/** A self-signed certificate of OpenSSL with its key. */
function selfSigned(algorithm: readonly string[], ...extra: string[]): { cert: string; key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'dynamic-ca-'))
  try {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = '/C=CH/O=Ex\\/ample/CN=Authority ü'
    const args = ['req', '-x509', '-utf8', '-noenc', '-days', '30', '-subj', subject, '-newkey', ...algorithm]
    execFileSync('openssl', [...args, '-keyout', key, '-out', cert, ...extra], { stdio: 'pipe' })
    return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const curve = (name: string) => ['ec', '-pkeyopt', `ec_paramgen_curve:${name}`]
const authority = selfSigned(curve('P-256'))

function certificateFor(tls: ReturnType<typeof createDynamicTls>, name: string): X509Certificate {
  return new X509Certificate(String(tls.identityFor(name)?.settings.cert))
}

function clockFrom(start: number) {
  const state = { at: start }
  return { state, tools: { now: () => state.at, randomBytes } }
}

describe('dynamic certificates', () => {
  it.each([
    ['ECDSA P-256', authority],
    ['ECDSA P-384', selfSigned(curve('P-384'))],
    ['ECDSA P-521', selfSigned(curve('P-521'))],
    ['RSA', selfSigned(['rsa:2048'])],
    ['Ed25519', selfSigned(['ed25519'])],
    [
      'an authority without key identifier',
      selfSigned(curve('P-256'), '-addext', 'subjectKeyIdentifier=none'),
    ],
  ])('are issued by %s for one server name', (_, { cert, key }) => {
    const tls = createDynamicTls({ cert, key }, clockFrom(Date.now()).tools)
    const issuer = new X509Certificate(cert)
    const issued = certificateFor(tls, 'api.example.com')
    expect(issued.verify(issuer.publicKey)).toBe(true)
    expect(issued.checkIssued(issuer)).toBe(true)
    expect(issued.issuer).toBe(issuer.subject)
    expect(issued.ca).toBe(false)
    expect(issued.subjectAltName).toBe('DNS:api.example.com')
    expect(issued.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
  })

  it('are reused until half of their validity, which ends within that of the authority', () => {
    const { state, tools } = clockFrom(Date.now())
    const tls = createDynamicTls(authority, tools)
    const first = tls.identityFor('a.test')
    state.at += dayMs / 2 - 1
    expect(tls.identityFor('a.test')).toBe(first)
    state.at += 1
    expect(tls.identityFor('a.test')).not.toBe(first)
    state.at = new X509Certificate(authority.cert).validToDate.getTime() - 1_000
    expect(certificateFor(tls, 'b.test').validToDate).toEqual(new X509Certificate(authority.cert).validToDate)
  })

  it('are bounded in number', () => {
    const { state, tools } = clockFrom(Date.now())
    const tls = createDynamicTls(authority, tools)
    const first = tls.identityFor('0.test')
    for (let index = 1; index <= 256; index += 1) {
      state.at += 50
      tls.identityFor(`${index}.test`)
    }
    expect(tls.identityFor('0.test')).not.toBe(first)
  })

  it('are issued at a limited rate, which concerns no name with a certificate', () => {
    const { state, tools } = clockFrom(Date.now())
    const tls = createDynamicTls(authority, tools)
    const known = tls.identityFor('0.test')
    for (let index = 1; index < 256; index += 1) expect(tls.identityFor(`${index}.test`)).toBeDefined()
    expect(tls.identityFor('new.test')).toBeUndefined()
    expect(tls.identityFor('0.test')).toBe(known)
    state.at += 50
    expect(tls.identityFor('new.test')).toBeDefined()
    expect(tls.identityFor('newer.test')).toBeUndefined()
    state.at -= 10_000
    expect(tls.identityFor('newer.test')).toBeUndefined()
  })

  it('are neither issued nor presented after the end of the authority, which is reported once', () => {
    const { state, tools } = clockFrom(Date.now())
    let reports = 0
    const tls = createDynamicTls(authority, { ...tools, onExpired: () => (reports += 1) })
    state.at = new X509Certificate(authority.cert).validToDate.getTime() - 1_000
    expect(tls.identityFor('a.test')).toBeDefined()
    state.at += 1_000
    expect([tls.identityFor('a.test'), tls.identityFor('b.test')]).toEqual([undefined, undefined])
    expect(reports).toBe(1)
  })

  it('are not issued without a server name', () => {
    expect(createDynamicTls(authority, clockFrom(0).tools).identityFor(undefined)).toBeUndefined()
  })

  it('have equal session ticket keys in all data planes, and others for other names', () => {
    const options = { ...authority, ticketSecret: Buffer.alloc(32, 1) }
    const [one, two] = [1, 2].map(() => createDynamicTls(options, clockFrom(Date.now()).tools))
    const keysOf = (tls: typeof one, name: string) => tls?.identityFor(name)?.settings.ticketKeys
    expect(keysOf(one, 'a.test')).toEqual(keysOf(two, 'a.test'))
    expect(keysOf(one, 'a.test')).not.toEqual(keysOf(one, 'b.test'))
  })

  it('require the certificate of an authority', () => {
    const leaf = selfSigned(curve('P-256'), '-addext', 'basicConstraints=critical,CA:false')
    expect(() => createDynamicTls(leaf, clockFrom(0).tools)).toThrow(
      /^cert: must be the certificate of an auth/,
    )
    const other = selfSigned(curve('secp256k1'))
    expect(() => createDynamicTls(other, clockFrom(0).tools)).toThrow(
      /^key: must be an RSA, ECDSA or Ed25519/,
    )
  })
})
