import {
  constants,
  createHash,
  createPrivateKey,
  hkdfSync,
  type KeyObject,
  X509Certificate,
} from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { messageOf } from '../../lib/thrown.ts'

/** A certificate with its demands on clients. Immutable: another certificate is another identity. */
export type TlsIdentity = {
  readonly settings: SecureContextOptions
  /** Client certificates are required and verified against the configured authorities. */
  readonly verifiesClients: boolean
  /** Digest of the demands on clients (authorities, versions, cipher suites); empty without demands. */
  readonly demands: string
}

/** TLS of one listener, by requested server name. */
export type ListenerTls = {
  /** Demands of each of its identities. */
  readonly demands: string
  /** Undefined refuses the handshake. */
  identityFor(serverName: string | undefined): TlsIdentity | undefined
}

/** TLS of one address, by requested server name. */
export type ServerTls = {
  /** Undefined refuses the handshake (`unrecognized_name`). */
  identityFor(serverName: string | undefined): TlsIdentity | undefined
  /** Whether connections with this server name are not terminated; undefined terminates all. */
  readonly passesThrough?: ((serverName: string | undefined) => boolean) | undefined
  /** Protocols offered by ALPN, the preferred first; none for TCP. */
  readonly alpn: readonly string[]
  /** Limit on the ClientHello, and on the rest of the handshake; undefined for the default. */
  readonly handshakeLimitMs?: number | undefined
}

/** ALPN protocols of HTTP listeners. */
export const httpAlpn: readonly string[] = ['h2', 'http/1.1']

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

export type TlsIdentityOptions = {
  /** PEM: the certificate, then its chain. */
  readonly cert: string
  /** PEM, not encrypted. */
  readonly key: string
  /** PEM: authorities of client certificates. With them, a client certificate is required. */
  readonly ca?: string | undefined
  readonly minVersion?: TlsVersion | undefined
  readonly maxVersion?: TlsVersion | undefined
  /** Names of OpenSSL or the RFCs; those of TLS 1.2 and 1.3 may be mixed. Default: Node's own. */
  readonly cipherSuites?: readonly string[] | undefined
  /** Groups of the key exchange by OpenSSL's names. Default: OpenSSL's own. */
  readonly groups?: readonly string[] | undefined
  /**
   * Secret of the process, from which the keys of session tickets are derived: any data plane resumes a
   * session. Without it the keys are random.
   */
  readonly ticketSecret?: Uint8Array | undefined
  /** Replaces certificate and key in that derivation: those of data planes differ. */
  readonly ticketScope?: string | undefined
}

const ticketKeyBytes = 48

/**
 * Validates a certificate with its key. Throws an error whose message starts with the invalid part: `cert`,
 * `key`, `root`, `minTLSVersion`, `cipherSuites`.
 */
export function createTlsIdentity(options: TlsIdentityOptions): TlsIdentity {
  const { cert, key, ca, minVersion = 'TLSv1.2', maxVersion = 'TLSv1.3', cipherSuites, groups } = options
  const certificate = part('cert', () => readCertificates(cert))
  const privateKey = part('key', () => readKey(key))
  if (!certificate.checkPrivateKey(privateKey)) throw new Error('key: is not the key of the certificate')
  if (ca !== undefined) part('root', () => readCertificates(ca))
  if (minVersion > maxVersion) throw new Error(`minTLSVersion: ${minVersion} is above ${maxVersion}`)
  const settings: SecureContextOptions = {
    cert,
    key,
    minVersion,
    maxVersion,
    honorCipherOrder: true,
    // Renegotiation in TLS 1.2 could change the server name.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(ca === undefined ? {} : { ca }),
    ...(cipherSuites === undefined || cipherSuites.length === 0 ? {} : { ciphers: cipherSuites.join(':') }),
    ...(groups === undefined ? {} : { ecdhCurve: groups.join(':') }),
    ...(options.ticketSecret === undefined
      ? {}
      : { ticketKeys: ticketKeysOf(options, options.ticketSecret) }),
  }
  try {
    createSecureContext(settings)
  } catch (error) {
    const part = cipherSuites === undefined ? 'tls' : 'cipherSuites'
    throw new Error(`${part}: ${messageOf(error)}`, { cause: error })
  }
  const demands = [ca, options.minVersion, options.maxVersion, cipherSuites, groups]
  return { settings, verifiesClients: ca !== undefined, demands: digestOf(demands) }
}

/** Whether a connection of one identity satisfies all demands of another. */
export function satisfies(
  identity: TlsIdentity | undefined,
  { demands }: Pick<TlsIdentity, 'demands'>,
): boolean {
  return demands === '' || identity?.demands === demands
}

/** Keys of session tickets. Each identity has its own: its sessions are not resumed under other rules. */
function ticketKeysOf(options: TlsIdentityOptions, secret: Uint8Array): Buffer {
  const { cert, key, ca, minVersion, maxVersion, cipherSuites, groups, ticketScope } = options
  const names = ticketScope === undefined ? [cert, key] : [ticketScope]
  const identity = JSON.stringify([...names, ca, minVersion, maxVersion, cipherSuites, groups])
  const salt = createHash('sha256').update(identity).digest()
  return Buffer.from(hkdfSync('sha256', secret, salt, 'tollgate/tls-tickets/1', ticketKeyBytes))
}

function digestOf(demands: readonly unknown[]): string {
  if (demands.every((demand) => demand === undefined)) return ''
  return createHash('sha256').update(JSON.stringify(demands)).digest('hex')
}

/** The reason why a text contains no certificates, as words after its name; undefined if it does. */
export function certificateProblem(pem: string): string | undefined {
  return problemOf(() => readCertificates(pem))
}

/** The reason why a text is not a usable private key, as words after its name; undefined if it is one. */
export function privateKeyProblem(pem: string): string | undefined {
  return problemOf(() => readKey(pem))
}

function problemOf(read: () => unknown): string | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function part<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new Error(`${name}: ${messageOf(error)}`, { cause: error })
  }
}

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** The first of the certificates; all must be readable. */
function readCertificates(pem: string): X509Certificate {
  const blocks = pem.match(certificatePattern) ?? []
  try {
    const [first] = blocks.map((block) => new X509Certificate(block))
    if (first) return first
  } catch (error) {
    throw new Error('contains a certificate that cannot be read', { cause: error })
  }
  throw new Error('contains no certificate in PEM format')
}

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch (error) {
    const reason = pem.includes('ENCRYPTED') ? 'is encrypted' : 'contains no private key in PEM format'
    throw new Error(reason, { cause: error })
  }
}
