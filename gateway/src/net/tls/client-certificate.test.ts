import { X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../../../test/support/certificates.ts'
import { describeClientCertificate, parseAlternativeNames } from './client-certificate.ts'

describe('parseAlternativeNames', () => {
  it.each([
    ['', []],
    ['DNS:a.test', [['DNS', 'a.test']]],
    [
      'DNS:a.test, IP Address:192.0.2.1, URI:spiffe://a/b, email:a@b.test',
      [
        ['DNS', 'a.test'],
        ['IP Address', '192.0.2.1'],
        ['URI', 'spiffe://a/b'],
        ['email', 'a@b.test'],
      ],
    ],
    ['DNS:a.test, DirName:"CN = x, DNS:b.test"', [['DNS', 'a.test']]],
    ['URI:"spiffe://a, URI:spiffe://b"', [['URI', 'spiffe://a, URI:spiffe://b']]],
    ['DNS:a.test, nonsense', []],
    ['DNS:a.test,DNS:b.test', []],
    ['DNS:"a', []],
    ['DNS:"\\x"', []],
  ])('parses %j', (text, names) => {
    expect(parseAlternativeNames(text).map(({ type, value }) => [type, value])).toEqual(names)
  })

  it('returns the names of any quoted texts, and none from within them', () => {
    const value = fc.string({ minLength: 1 })
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 5 }), (values) => {
        const text = values.map((one) => `URI:${JSON.stringify(one)}`).join(', ')
        expect(parseAlternativeNames(text)).toEqual(values.map((one) => ({ type: 'URI', value: one })))
      }),
    )
  })

  it('terminates on any text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(Array.isArray(parseAlternativeNames(text))).toBe(true)
      }),
    )
  })
})

describe('describeClientCertificate', () => {
  // Certificates are valid from the second of their creation.
  const now = Date.now() + 60_000
  let authority: ReturnType<typeof createAuthority>

  beforeAll(() => {
    authority = createAuthority('Test authority')
  })

  function describeOf(...names: string[]) {
    return describeClientCertificate(new X509Certificate(authority.issue(...names).cert), now)
  }

  it('returns names, subject, issuer and text', () => {
    expect(describeOf('job.test', '192.0.2.1')).toEqual({
      certificate: expect.stringContaining('BEGIN CERTIFICATE'),
      subject: 'CN=job.test',
      subjectCn: 'job.test',
      issuer: 'CN=Test authority',
      subjectAltNames: ['job.test', '192.0.2.1'],
    })
  })

  it('returns the parts of a SPIFFE id', () => {
    expect(describeOf('job', 'spiffe://cluster.local/ns/default/sa/job')).toMatchObject({
      spiffeId: 'spiffe://cluster.local/ns/default/sa/job',
      identity: { trustDomain: 'cluster.local', namespace: 'default', serviceAccount: 'job' },
    })
    const other = describeOf('job', 'spiffe://example.org/job')
    expect(other).toMatchObject({ spiffeId: 'spiffe://example.org/job' })
    expect(other).not.toHaveProperty('identity')
  })

  it('returns no SPIFFE id if the certificate has two URIs', () => {
    expect(describeOf('job', 'spiffe://a.test/x', 'spiffe://a.test/y')).not.toHaveProperty('spiffeId')
  })

  it('returns undefined outside the validity', () => {
    const certificate = new X509Certificate(authority.issue('job.test').cert)
    expect(describeClientCertificate(certificate, certificate.validToDate.getTime() + 1)).toBeUndefined()
    expect(describeClientCertificate(certificate, certificate.validFromDate.getTime() - 1)).toBeUndefined()
  })
})
