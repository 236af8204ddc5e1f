import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'

/** One certificate and what clients must do to be served with it. Immutable: another certificate is another identity. */
export type TlsIdentity = {
  readonly settings: SecureContextOptions
  /** Client certificates are asked for, and must be of the configured authorities. */
  readonly verifiesClients: boolean
}

/** TLS of one address, by the server name clients ask for. */
export type ServerTls = {
  /** Undefined refuses the handshake (`unrecognized_name`). */
  identityFor(serverName: string | undefined): TlsIdentity | undefined
  /** Protocols offered by ALPN, the preferred first; none for TCP. */
  readonly alpn: readonly string[]
}

/** What HTTP listeners offer by ALPN. */
export const httpAlpn: readonly string[] = ['h2', 'http/1.1']

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

export type TlsIdentityOptions = {
  /** PEM: the certificate, then those it was issued through. */
  readonly cert: string
  /** PEM, not encrypted. */
  readonly key: string
  /** PEM: authorities whose client certificates are accepted. With them, every client must show one. */
  readonly ca?: string | undefined
  readonly minVersion?: TlsVersion | undefined
  readonly maxVersion?: TlsVersion | undefined
  /** Names of OpenSSL or the RFCs; those of TLS 1.2 and 1.3 may be mixed. Node's own unless given. */
  readonly cipherSuites?: readonly string[] | undefined
}

/**
 * Checks a certificate with its key. Throws an error whose message starts with the part that is wrong: `cert`, `key`,
 * `root`, `minTLSVersion`, `cipherSuites`.
 */
export function createTlsIdentity(options: TlsIdentityOptions): TlsIdentity {
  const { cert, key, ca, minVersion = 'TLSv1.2', maxVersion = 'TLSv1.3', cipherSuites } = options
  const certificate = readCertificates(cert, 'cert')
  const privateKey = readKey(key)
  if (!certificate.checkPrivateKey(privateKey)) throw new Error('key: is not the key of the certificate')
  if (ca !== undefined) readCertificates(ca, 'root')
  if (minVersion > maxVersion) throw new Error(`minTLSVersion: ${minVersion} is above ${maxVersion}`)
  const settings: SecureContextOptions = {
    cert,
    key,
    minVersion,
    maxVersion,
    honorCipherOrder: true,
    ...(ca === undefined ? {} : { ca }),
    ...(cipherSuites === undefined || cipherSuites.length === 0 ? {} : { ciphers: cipherSuites.join(':') }),
  }
  try {
    createSecureContext(settings)
  } catch (error) {
    const part = cipherSuites === undefined ? 'tls' : 'cipherSuites'
    throw new Error(`${part}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
  return { settings, verifiesClients: ca !== undefined }
}

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** The first of the certificates; each must be readable. */
function readCertificates(pem: string, part: string): X509Certificate {
  const blocks = pem.match(certificatePattern) ?? []
  try {
    const [first] = blocks.map((block) => new X509Certificate(block))
    if (first) return first
  } catch (error) {
    throw new Error(`${part}: holds a certificate that cannot be read`, { cause: error })
  }
  throw new Error(`${part}: holds no certificate in PEM format`)
}

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    const reason = pem.includes('ENCRYPTED') ? 'is encrypted' : 'holds no private key in PEM format'
    throw new Error(`key: ${reason}`, { cause: error })
  }
}
