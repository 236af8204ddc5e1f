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
  /** Called once, at the first handshake after the end of the authority. */
  onExpired?(): void
}

/** Server names with a certificate; the least recently used one is removed. */
const maxNames = 256
const validityMs = 86_400_000
/** Clocks of clients differ. */
const backdatedMs = 3_600_000

/**
 * Certificates of new names: at once, and per second afterwards. Issuance costs about a millisecond of CPU,
 * and clients choose the names.
 */
const burst = maxNames
const issuesPerSecond = 20

type Issued = { readonly identity: TlsIdentity; readonly renewAt: number; readonly expiresAt: number }

/**
 * Creates TLS with a certificate for each server name, issued by the authority `cert` on its first
 * connection. Clients without a server name are refused, new names beyond the rate of issuance, and all
 * clients after the end of the authority.
 * Throws an error whose message starts with the invalid part, as `createTlsIdentity`.
 */
export function createDynamicTls(options: TlsIdentityOptions, tools: DynamicCaOptions): ListenerTls {
  const { demands } = createTlsIdentity(options)
  const { issuer, endsAt } = readAuthority(options)
  const issued = createLru<string, Issued>(maxNames)
  const mayIssue = createBucket(tools.now)
  let hasExpired = false

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
    return { identity, renewAt: now + (expiresAt - now) / 2, expiresAt }
  }

  return {
    demands,
    identityFor(serverName) {
      if (serverName === undefined) return undefined
      const now = tools.now()
      // No client accepts the certificates of an authority that has expired.
      if (now >= endsAt) {
        if (!hasExpired) tools.onExpired?.()
        hasExpired = true
        return undefined
      }
      const known = issued.get(serverName)
      if (known !== undefined && now < known.renewAt) return known.identity
      if (!mayIssue()) return known !== undefined && now < known.expiresAt ? known.identity : undefined
      const next = issue(serverName)
      issued.set(serverName, next)
      return next.identity
    },
  }
}

/** Creates the rate limit of issuance. A clock that is set back refills nothing. */
function createBucket(now: () => number): () => boolean {
  let left = burst
  let filledAt = now()
  return () => {
    const at = now()
    left = Math.min(burst, left + (Math.max(0, at - filledAt) * issuesPerSecond) / 1000)
    filledAt = at
    if (left < 1) return false
    left -= 1
    return true
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
