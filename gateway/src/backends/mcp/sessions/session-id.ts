import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'

/** What a session id says to whoever holds the key. */
export type SealedSession = {
  /** Milliseconds since the epoch. */
  createdAt: number
  /** Digest of who opened the session. */
  owner: string
  /** What the targets need to go on. */
  state: JsonObject
  /** Revision that the targets agreed to. */
  revision?: string | undefined
}

export type SessionIds = {
  /** An id that carries the session; undefined where it would be too long for a header. */
  seal(session: SealedSession): string | undefined
  /** What an id carries; undefined for one that was not made with this key for this place, or was changed. */
  unseal(id: string): SealedSession | undefined
  /** Unique to one id, and short. */
  fingerprint(id: string): string
}

/** Header fields of more than some kilobytes are refused by common proxies. */
const maxIdLength = 4_096
const nonceBytes = 12
const tagBytes = 16

/**
 * Session ids sealed with AES-256-GCM, so that any replica with the key can go on with a session and nobody without it
 * can make one. `place` is authenticated too: an id is good only where it was made.
 */
export function createSessionIds(key: Buffer, scope: string): SessionIds {
  const context = Buffer.from(`tollgate/mcp-session/1/${scope}`)
  return {
    seal({ createdAt, owner, state, revision }) {
      // A random nonce may be used 2^32 times with one key (NIST SP 800-38D, 8.3), far more than sessions are opened.
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      cipher.setAAD(context)
      const text = JSON.stringify({ t: createdAt, o: owner, s: state, r: revision })
      const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      const id = sealed.toString('base64url')
      return id.length > maxIdLength ? undefined : id
    },
    unseal(id) {
      if (id.length > maxIdLength) return undefined
      const sealed = Buffer.from(id, 'base64url')
      // One session has one spelling; the decoder takes many.
      if (sealed.length < nonceBytes + tagBytes || sealed.toString('base64url') !== id) return undefined
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
      decipher.setAAD(context)
      decipher.setAuthTag(sealed.subarray(-tagBytes))
      try {
        const text = decipher.update(sealed.subarray(nonceBytes, -tagBytes), undefined, 'utf8')
        return readSealed(JSON.parse(text + decipher.final('utf8')))
      } catch {
        return undefined
      }
    },
    fingerprint: (id) => id.slice(0, nonceBytes * 2),
  }
}

/** A digest of whoever a session belongs to, so that the id names nobody. */
export function digestOwner(owner: string): string {
  return createHash('sha256').update(owner).digest('base64url').slice(0, 22)
}

function readSealed(value: unknown): SealedSession | undefined {
  if (!isJsonObject(value)) return undefined
  const { t: createdAt, o: owner, s: state, r: revision } = value
  if (typeof createdAt !== 'number' || typeof owner !== 'string' || !isJsonObject(state)) return undefined
  return { createdAt, owner, state, ...(typeof revision === 'string' ? { revision } : undefined) }
}
