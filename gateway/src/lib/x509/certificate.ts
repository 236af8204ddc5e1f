import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { isIP } from 'node:net'
import { addressBytes } from '../address/cidr.ts'
import {
  bitString,
  context,
  type Der,
  integer,
  isTrue,
  none,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
  time,
  utf8String,
} from './der.ts'
import { readDer } from './read-der.ts'

/** Random bytes of a length; `randomBytes` of `node:crypto`. */
export type RandomBytes = (length: number) => Uint8Array

/** Issuer of certificates. */
export type Issuer = {
  /** Encoded distinguished name, `nameOf` of a common name. */
  readonly name: Der
  /** Private key: RSA, ECDSA on P-256, P-384 or P-521, or Ed25519. */
  readonly key: KeyObject
  /** Subject key identifier of its certificate; that of the key by default. */
  readonly keyIdentifier?: Buffer | undefined
}

export type CertificateRequest = {
  /** Common name. */
  readonly subject: string
  readonly publicKey: KeyObject
  readonly issuer: Issuer
  /** Milliseconds since the Unix epoch. */
  readonly validFrom: number
  readonly expiresAt: number
  readonly extensions: readonly Der[]
}

const serialBytes = 16

const oid = {
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const

/**
 * Issues a certificate of version 3 (RFC 5280), PEM. Throws if certificates cannot be signed with the key of
 * the issuer.
 */
export function createCertificate(request: CertificateRequest, randomBytes: RandomBytes): string {
  const { subject, publicKey, issuer, validFrom, expiresAt, extensions } = request
  const signature = signatureOf(issuer.key)
  if (signature === undefined) throw new Error('the key of the issuer is of another kind')
  const { algorithm, digest } = signature
  const version3 = context(0, integer(Buffer.of(2)), 'constructed')
  const ofIssuer = issuer.keyIdentifier ?? keyIdentifier(createPublicKey(issuer.key))
  const keyIdentifiers = [
    extension(oid.subjectKeyIdentifier, octetString(keyIdentifier(publicKey))),
    extension(oid.authorityKeyIdentifier, sequence(context(0, ofIssuer, 'primitive'))),
  ]
  const content = sequence(
    version3,
    integer(randomBytes(serialBytes)),
    algorithm,
    issuer.name,
    sequence(time(validFrom), time(expiresAt)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    context(3, sequence(...extensions, ...keyIdentifiers), 'constructed'),
  )
  const certificate = sequence(content, algorithm, bitString(sign(digest, content, issuer.key)))
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

/** Extensions of a server certificate for DNS names and IP addresses. */
export function serverExtensions(names: readonly string[]): Der[] {
  return [
    extension(oid.basicConstraints, sequence(), 'critical'),
    // digitalSignature.
    extension(oid.keyUsage, bitString(Buffer.of(0x80), 7), 'critical'),
    extension(oid.extendedKeyUsage, sequence(objectIdentifier(oid.serverAuth))),
    extension(oid.subjectAltName, sequence(...names.map(alternativeName))),
  ]
}

/** Extensions of an authority without intermediate authorities. */
export function authorityExtensions(): Der[] {
  return [
    extension(oid.basicConstraints, sequence(isTrue(), integer(Buffer.of(0))), 'critical'),
    // keyCertSign and cRLSign.
    extension(oid.keyUsage, bitString(Buffer.of(0x06), 1), 'critical'),
  ]
}

/** Upper bound of a common name (RFC 5280, ub-common-name). */
const maxCommonName = 64

/** Encodes a distinguished name of a common name. */
export function nameOf(commonName: string): Der {
  const value = utf8String(commonName.slice(0, maxCommonName))
  return sequence(setOf(sequence(objectIdentifier(oid.commonName), value)))
}

/** SHA-1 of the public key, as RFC 5280, 4.2.1.2, method 1: an identifier, not a protection. */
export function keyIdentifier(publicKey: KeyObject): Buffer {
  const [info] = readDer(publicKey.export({ type: 'spki', format: 'der' }))
  const [, key] = readDer(info?.content ?? Buffer.alloc(0))
  // The first byte of a bit string is the number of unused bits.
  return createHash('sha1')
    .update(key?.content.subarray(1) ?? Buffer.alloc(0))
    .digest()
}

type Signature = { readonly algorithm: Der; readonly digest: string | null }

const ecdsa: Readonly<Record<string, { id: string; digest: string }>> = {
  prime256v1: { id: '1.2.840.10045.4.3.2', digest: 'sha256' },
  secp384r1: { id: '1.2.840.10045.4.3.3', digest: 'sha384' },
  secp521r1: { id: '1.2.840.10045.4.3.4', digest: 'sha512' },
}

/** Whether certificates can be signed with a key. */
export function canIssue(key: KeyObject): boolean {
  return signatureOf(key) !== undefined
}

function signatureOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): Signature | undefined {
  if (asymmetricKeyType === 'rsa')
    return { algorithm: sequence(objectIdentifier('1.2.840.113549.1.1.11'), none()), digest: 'sha256' }
  if (asymmetricKeyType === 'ed25519')
    return { algorithm: sequence(objectIdentifier('1.3.101.112')), digest: null }
  const curve = ecdsa[asymmetricKeyDetails?.namedCurve ?? '']
  return curve && { algorithm: sequence(objectIdentifier(curve.id)), digest: curve.digest }
}

function extension(id: string, value: Der, importance?: 'critical'): Der {
  const criticality = importance === 'critical' ? [isTrue()] : []
  return sequence(objectIdentifier(id), ...criticality, octetString(value))
}

function alternativeName(name: string): Der {
  const address = isIP(name) === 0 ? undefined : addressBytes(name)
  return address === undefined
    ? context(2, Buffer.from(name), 'primitive')
    : context(7, Buffer.from(address), 'primitive')
}
