import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  X509Certificate,
} from 'node:crypto'
import {
  authorityExtensions,
  createCertificate,
  nameOf,
  type RandomBytes,
  serverExtensions,
} from '../../../lib/x509/certificate.ts'

/** A certificate authority: certificate and PKCS #8 key, both PEM. */
export type CertificateAuthority = { readonly certificate: string; readonly key: string }

/** A server certificate: chain and PKCS #8 key, both PEM. */
export type IssuedCertificate = {
  readonly chain: string
  readonly key: string
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: number
}

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
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const expiresAt = tools.now + serverDays * dayMs
  const certificate = createCertificate(
    {
      subject: names[0] ?? '',
      publicKey: createPublicKey(privateKey),
      issuer: { name: nameOf(authorityName), key: createPrivateKey(authority.key) },
      validFrom: tools.now - backdatedMs,
      expiresAt,
      extensions: serverExtensions(names),
    },
    tools.randomBytes,
  )
  return { chain: certificate, key: pemOf(privateKey), expiresAt }
}

function issueAuthority(key: KeyObject, tools: CertificateTools): CertificateAuthority {
  const certificate = createCertificate(
    {
      subject: authorityName,
      publicKey: createPublicKey(key),
      issuer: { name: nameOf(authorityName), key },
      validFrom: tools.now - backdatedMs,
      expiresAt: tools.now + authorityDays * dayMs,
      extensions: authorityExtensions(),
    },
    tools.randomBytes,
  )
  return { certificate, key: pemOf(key) }
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function renewalTimeOf({ validFromDate, validToDate }: X509Certificate): number {
  const from = validFromDate.getTime()
  return from + ((validToDate.getTime() - from) * 2) / 3
}
