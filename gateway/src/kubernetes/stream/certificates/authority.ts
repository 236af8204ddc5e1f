import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'
import { addressBytes } from '../../../lib/address/cidr.ts'
import {
  bitString,
  context,
  type Der,
  integer,
  isTrue,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
  time,
  utf8String,
} from './der.ts'

/** A certificate authority: certificate and PKCS #8 key, both PEM. */
export type CertificateAuthority = { readonly certificate: string; readonly key: string }

/** A server certificate: chain and PKCS #8 key, both PEM. */
export type IssuedCertificate = {
  readonly chain: string
  readonly key: string
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: number
}

/** Random bytes of a length; `randomBytes` of `node:crypto`. */
export type RandomBytes = (length: number) => Uint8Array

export type CertificateTools = {
  /** Current time in milliseconds since the Unix epoch. */
  readonly now: number
  readonly randomBytes: RandomBytes
}

const dayMs = 86_400_000
const authorityDays = 3_650
const serverDays = 90
/** Clocks of nodes differ. */
const backdatedMs = 3_600_000
const serialBytes = 16
const authorityName = 'Tollgate controller'

/** Creates an authority (ECDSA P-256) of ten years with a new key. */
export function createCertificateAuthority(tools: CertificateTools): CertificateAuthority {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return issueAuthority(privateKey, tools)
}

/**
 * Renews an authority in its last third: the same key with a new certificate, so that certificates of both
 * verify with either. Returns the same object before that time. Throws if the certificate is not that of an
 * authority with the key.
 */
export function renewCertificateAuthority(
  authority: CertificateAuthority,
  tools: CertificateTools,
): CertificateAuthority {
  const certificate = new X509Certificate(authority.certificate)
  const key = createPrivateKey(authority.key)
  if (!certificate.ca || !certificate.checkPrivateKey(key)) {
    throw new Error('the certificate authority is not valid: its certificate must be that of its key')
  }
  return tools.now < renewalTimeOf(certificate) ? authority : issueAuthority(key, tools)
}

/** Time of the renewal, after two thirds of the validity, in milliseconds since the Unix epoch. */
export function renewalTime({ chain }: IssuedCertificate): number {
  return renewalTimeOf(new X509Certificate(chain))
}

/** Issues a server certificate of 90 days with a new key for DNS names and IP addresses. */
export function issueServerCertificate(
  authority: CertificateAuthority,
  names: readonly string[],
  tools: CertificateTools,
): IssuedCertificate {
  const issuerKey = createPrivateKey(authority.key)
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const expiresAt = tools.now + serverDays * dayMs
  const certificate = createCertificate(
    {
      subject: names[0] ?? '',
      publicKey: createPublicKey(privateKey),
      issuer: authorityName,
      issuerKey,
      expiresAt,
      extensions: [
        extension(oid.basicConstraints, sequence(), 'critical'),
        extension(oid.keyUsage, bitString(Buffer.of(0x80), 7), 'critical'),
        extension(oid.extendedKeyUsage, sequence(objectIdentifier(oid.serverAuth))),
        extension(oid.subjectAltName, sequence(...names.map(alternativeName))),
      ],
    },
    tools,
  )
  return { chain: certificate, key: pemOf(privateKey), expiresAt }
}

type CertificateRequest = {
  readonly subject: string
  readonly publicKey: KeyObject
  readonly issuer: string
  readonly issuerKey: KeyObject
  readonly expiresAt: number
  readonly extensions: readonly Der[]
}

const oid = {
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
} as const

function issueAuthority(key: KeyObject, tools: CertificateTools): CertificateAuthority {
  const certificate = createCertificate(
    {
      subject: authorityName,
      publicKey: createPublicKey(key),
      issuer: authorityName,
      issuerKey: key,
      expiresAt: tools.now + authorityDays * dayMs,
      extensions: [
        // CA, without intermediate authorities.
        extension(oid.basicConstraints, sequence(isTrue(), integer(Buffer.of(0))), 'critical'),
        // keyCertSign and cRLSign.
        extension(oid.keyUsage, bitString(Buffer.of(0x06), 1), 'critical'),
      ],
    },
    tools,
  )
  return { certificate, key: pemOf(key) }
}

/** Certificate of version 3 (RFC 5280), PEM. */
function createCertificate(request: CertificateRequest, { now, randomBytes }: CertificateTools): string {
  const { subject, publicKey, issuer, issuerKey, expiresAt, extensions } = request
  const algorithm = sequence(objectIdentifier(oid.ecdsaWithSha256))
  const version3 = context(0, integer(Buffer.of(2)), 'constructed')
  const keyIdentifiers = [
    extension(oid.subjectKeyIdentifier, octetString(keyIdentifier(publicKey))),
    extension(
      oid.authorityKeyIdentifier,
      sequence(context(0, keyIdentifier(createPublicKey(issuerKey)), 'primitive')),
    ),
  ]
  const content = sequence(
    version3,
    integer(randomBytes(serialBytes)),
    algorithm,
    nameOf(issuer),
    sequence(time(now - backdatedMs), time(expiresAt)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    context(3, sequence(...extensions, ...keyIdentifiers), 'constructed'),
  )
  const certificate = sequence(content, algorithm, bitString(sign('sha256', content, issuerKey)))
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

function extension(id: string, value: Der, importance?: 'critical'): Der {
  const criticality = importance === 'critical' ? [isTrue()] : []
  return sequence(objectIdentifier(id), ...criticality, octetString(value))
}

/** Upper bound of a common name (RFC 5280, ub-common-name). */
const maxCommonName = 64

function nameOf(commonName: string): Der {
  const value = utf8String(commonName.slice(0, maxCommonName))
  return sequence(setOf(sequence(objectIdentifier(oid.commonName), value)))
}

/** SHA-1 of the public key, as RFC 5280, 4.2.1.2, method 1: an identifier, not a protection. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const uncompressed = 0x04
  const point = Buffer.concat([
    Buffer.of(uncompressed),
    Buffer.from(x, 'base64url'),
    Buffer.from(y, 'base64url'),
  ])
  return createHash('sha1').update(point).digest()
}

function alternativeName(name: string): Der {
  const address = isIP(name) === 0 ? undefined : addressBytes(name)
  return address === undefined
    ? context(2, Buffer.from(name), 'primitive')
    : context(7, Buffer.from(address), 'primitive')
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function renewalTimeOf({ validFromDate, validToDate }: X509Certificate): number {
  const from = validFromDate.getTime()
  return from + ((validToDate.getTime() - from) * 2) / 3
}
