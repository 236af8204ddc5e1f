import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'

/** Content of a session id. */
export type SealedSession = {
  /** Milliseconds since the epoch. */
  createdAt: number
  /** Digest of the session's owner. */
  owner: string
  /** Index of the data plane that started the session. */
  home: number
  /** State for resumption at the targets; empty for bound sessions. */
  state: JsonObject
  /** Identifies the run of the data plane to which the session is bound; undefined for sealed sessions. */
  boundTo?: string | undefined
  /** Revision from the response to `initialize`. */
  revision?: string | undefined
}

export type SessionIds = {
  /** Encrypts a session into an id; undefined if the id exceeds common header limits. */
  seal(session: SealedSession): string | undefined
  /** Decrypts an id; undefined for ids of another key or endpoint, and for modified ids. */
  unseal(id: string): SealedSession | undefined
  /** Short unique fingerprint of an id. */
  fingerprint(id: string): string
}

/** Common proxies reject header fields of several kilobytes. */
const maxIdLength = 4_096
const nonceBytes = 12
const tagBytes = 16

/**
 * Creates session ids sealed with AES-256-GCM: replicas with the key can resume a session, and forgery
 * requires the key. `scope` is authenticated data, so an id is valid only at its endpoint.
 */
export function createSessionIds(key: Buffer, scope: string): SessionIds {
  const context = Buffer.from(`tollgate/mcp-session/1/${scope}`)
  return {
    seal({ createdAt, owner, home, state, boundTo, revision }) {
      // Random nonces allow 2^32 uses of one key (NIST SP 800-38D, 8.3), far more than the number of
      // sessions.
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      cipher.setAAD(context)
      const content = { t: createdAt, o: owner, h: home, s: state, b: boundTo, r: revision }
      const text = JSON.stringify(content)
      const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      const id = sealed.toString('base64url')
      return id.length > maxIdLength ? undefined : id
    },
    unseal(id) {
      if (id.length > maxIdLength) return undefined
      const sealed = Buffer.from(id, 'base64url')
      // Rejects other encodings of the same bytes, which the decoder accepts.
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

/** Digest of a session's owner, so that ids contain no identity. */
export function digestOwner(owner: string): string {
  return createHash('sha256').update(owner).digest('base64url').slice(0, 22)
}

function readSealed(value: unknown): SealedSession | undefined {
  if (!isJsonObject(value)) return undefined
  const { t: createdAt, o: owner, h: home = 0, s: state, b: boundTo, r: revision } = value
  if (typeof createdAt !== 'number' || typeof owner !== 'string' || !isJsonObject(state)) return undefined
  if (typeof home !== 'number' || !Number.isSafeInteger(home) || home < 0) return undefined
  return {
    createdAt,
    owner,
    home,
    state,
    ...(typeof boundTo === 'string' ? { boundTo } : undefined),
    ...(typeof revision === 'string' ? { revision } : undefined),
  }
}
