import {
  createPrivateKey,
  createVerify,
  generateKeyPairSync,
  hash,
  verify,
  X509Certificate,
} from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { createAuthority } from '../../../test/support/certificates.ts'
import { compileSigner } from './signed-jwt.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pemOf = ({ privateKey }: Pick<typeof rsa, 'privateKey'>) =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

function parts(token: string) {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const text = `${header}.${payload}`
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  return { header: read(header), claims: read(payload), text, signature: Buffer.from(signature, 'base64url') }
}

describe('a signer of tokens', () => {
  it('signs with RSA', () => {
    const sign = compileSigner({ signingKey: pemOf(rsa), kid: 'one' }, fixtureContext())
    const { header, claims, text, signature } = parts(sign({ sub: 'a' }))
    expect({ header, claims }).toEqual({
      header: { alg: 'RS256', typ: 'JWT', kid: 'one' },
      claims: { sub: 'a' },
    })
    expect(createVerify('sha256').update(text).verify(rsa.publicKey, signature)).toBe(true)
  })

  it('signs with ECDSA in the form of RFC 7518', () => {
    const sign = compileSigner({ signingKey: pemOf(ec), alg: 'ES256' }, fixtureContext())
    const { text, signature } = parts(sign({}))
    expect(signature).toHaveLength(64)
    const key = { key: ec.publicKey, dsaEncoding: 'ieee-p1363' } as const
    expect(verify('sha256', Buffer.from(text), key, signature)).toBe(true)
  })

  it('rejects a key that does not fit the algorithm, without showing it', () => {
    const compile = (signingKey: string, alg: 'RS256' | 'ES256' | 'ES384') => () =>
      compileSigner({ signingKey, alg }, fixtureContext())
    expect(compile(pemOf(ec), 'RS256')).toThrow('RS256 requires an RSA key')
    expect(compile(pemOf(ec), 'ES384')).toThrow('ES384 requires an EC key of curve secp384r1')
    expect(compile('secret text', 'RS256')).toThrow(/^signingKey is not a private key: expected PEM$/)
  })

  describe('with a certificate', () => {
    const authority = createAuthority('assertions')
    const { cert, key } = authority.issue('gateway.test')
    const alg = createPrivateKey(key).asymmetricKeyType === 'ec' ? 'ES256' : 'RS256'
    const headerOf = (certificate: string, certificateHeader: 'x5c' | 'x5t#S256', signingKey = key) => {
      const config = { signingKey, alg, certificate, certificateHeader } as const
      return parts(compileSigner(config, fixtureContext())({})).header
    }
    const der = (pem: string) => new X509Certificate(pem).raw

    it('sends its chain or its thumbprint', () => {
      expect(headerOf(cert + authority.cert, 'x5c')).toEqual({
        ...{ alg, typ: 'JWT', x5c: [cert, authority.cert].map((pem) => der(pem).toString('base64')) },
      })
      expect(headerOf(cert, 'x5t#S256')['x5t#S256']).toBe(hash('sha256', der(cert), 'base64url'))
    })

    it('rejects one of another key, and other texts', () => {
      expect(() => headerOf(authority.cert, 'x5c')).toThrow('must begin with the certificate of signingKey')
      expect(() => headerOf('text', 'x5c')).toThrow(/^certificate is not a certificate: expected PEM$/)
    })
  })
})
