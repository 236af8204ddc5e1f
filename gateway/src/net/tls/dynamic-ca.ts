import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { createLru } from '../../lib/lru.ts'
import { issuerOf } from '../../lib/x509/authority.ts'
import {
  canIssue,
  createCertificate,
  type Issuer,
  type RandomBytes,
  serverExtensions,
} from '../../lib/x509/certificate.ts'
import {
  createTlsIdentity,
  type ListenerTls,
  type TlsIdentity,
  type TlsIdentityOptions,
} from './server-tls.ts'

export type DynamicCaOptions = {
  /** Milliseconds since the Unix epoch. */
  now(): number
  readonly randomBytes: RandomBytes
}

/** Server names with a certificate; the least recently used one is removed. */
const maxNames = 256
const validityMs = 86_400_000
/** Clocks of clients differ. */
const backdatedMs = 3_600_000

type Issued = { readonly identity: TlsIdentity; readonly renewAt: number }

/**
 * Creates TLS with a certificate for each server name, issued by the authority `cert` on its first
 * connection. Clients without a server name are refused, and all clients after the end of the authority.
 * Throws an error whose message starts with the invalid part, as `createTlsIdentity`.
 */
export function createDynamicTls(options: TlsIdentityOptions, tools: DynamicCaOptions): ListenerTls {
  const { demands } = createTlsIdentity(options)
  const { issuer, endsAt } = readAuthority(options)
  const issued = createLru<string, Issued>(maxNames)

  function issue(name: string): Issued {
    const now = tools.now()
    const expiresAt = Math.min(now + validityMs, endsAt)
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const certificate = createCertificate(
      {
        subject: name,
        publicKey: createPublicKey(privateKey),
        issuer,
        validFrom: now - backdatedMs,
        expiresAt,
        extensions: serverExtensions([name]),
      },
      tools.randomBytes,
    )
    const identity = createTlsIdentity({
      ...options,
      cert: certificate + options.cert,
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      ticketScope: `${name} ${options.key}`,
    })
    return { identity, renewAt: now + (expiresAt - now) / 2 }
  }

  return {
    demands,
    identityFor(serverName) {
      if (serverName === undefined) return undefined
      const now = tools.now()
      // No client accepts the certificates of an authority that has expired.
      if (now >= endsAt) return undefined
      const known = issued.get(serverName)
      if (known !== undefined && now < known.renewAt) return known.identity
      const next = issue(serverName)
      issued.set(serverName, next)
      return next.identity
    },
  }
}

/** Issuer with the end of its validity, from a certificate and its key. Throws as `createDynamicTls`. */
export function readAuthority({ cert, key }: Pick<TlsIdentityOptions, 'cert' | 'key'>): {
  issuer: Issuer
  endsAt: number
} {
  const authority = new X509Certificate(cert)
  const privateKey = createPrivateKey(key)
  if (!authority.ca) throw new Error('cert: must be the certificate of an authority with mode dynamicCa')
  if (!canIssue(privateKey)) throw new Error('key: must be an RSA, ECDSA or Ed25519 key with mode dynamicCa')
  return { issuer: issuerOf(authority, privateKey), endsAt: authority.validToDate.getTime() }
}
