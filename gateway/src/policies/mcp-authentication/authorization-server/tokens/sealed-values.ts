import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'

/** Purposes of sealed values. Each has its own key, so that a value is valid for one purpose only. */
const purposes = ['client', 'request', 'login', 'code', 'access', 'refresh'] as const
export type Purpose = (typeof purposes)[number]

/** Encrypted values that the gateway issues and later reads back, instead of storing them. */
export type SealedValues = {
  /** Seals a value that expires at `expiresAt` (milliseconds since the epoch); undefined means no expiry. */
  seal(purpose: Purpose, value: JsonObject, expiresAt: number | undefined): string
  /** Reads a value; undefined if it is forged, expired, or sealed for another purpose, issuer or key. */
  unseal(purpose: Purpose, text: string): JsonObject | undefined
}

const nonceBytes = 12
const tagBytes = 16
const maxLength = 24 * 1024

/** `settings`: values become invalid when these change, except registrations. */
export type SealingContext = { issuer: string; settings: string }

/**
 * Seals values with AES-256-GCM under keys derived from the session key (HKDF, RFC 5869). The issuer is part
 * of the derivation: two endpoints with the same session key do not accept values of each other.
 */
export function createSealedValues(sessionKey: Buffer, place: SealingContext, clock: Clock): SealedValues {
  const keys = new Map(purposes.map((purpose) => [purpose, deriveKey(sessionKey, purpose, place)]))

  function keyOf(purpose: Purpose): Buffer {
    return keys.get(purpose) ?? deriveKey(sessionKey, purpose, place)
  }

  return {
    seal(purpose, value, expiresAt) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', keyOf(purpose), nonce)
      const text = JSON.stringify({ v: value, ...(expiresAt === undefined ? {} : { e: expiresAt }) })
      const sealed = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
      return Buffer.concat(sealed).toString('base64url')
    },
    unseal(purpose, text) {
      if (text.length > maxLength) return undefined
      const sealed = Buffer.from(text, 'base64url')
      // The decoder accepts several encodings of a value; only the canonical one is valid.
      if (sealed.length < nonceBytes + tagBytes || sealed.toString('base64url') !== text) return undefined
      return unexpired(decrypted(keyOf(purpose), sealed), clock.now())
    },
  }
}

function deriveKey(sessionKey: Buffer, purpose: Purpose, { issuer, settings }: SealingContext): Buffer {
  const parts = purpose === 'client' ? [purpose, issuer] : [purpose, issuer, settings]
  // Node limits the info to 1,024 bytes; RFC 5869 does not.
  const info = createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
  return Buffer.from(hkdfSync('sha256', sessionKey, '', `tollgate/mcp-front/1/${info}`, 32))
}

function decrypted(key: Buffer, sealed: Buffer): unknown {
  const options = { authTagLength: tagBytes }
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, nonceBytes), options)
  decipher.setAuthTag(sealed.subarray(-tagBytes))
  try {
    const text = decipher.update(sealed.subarray(nonceBytes, -tagBytes), undefined, 'utf8')
    return JSON.parse(text + decipher.final('utf8'))
  } catch {
    return undefined
  }
}

function unexpired(content: unknown, now: number): JsonObject | undefined {
  if (!isJsonObject(content)) return undefined
  const { v: value, e: expiresAt } = content
  if (expiresAt !== undefined && (typeof expiresAt !== 'number' || expiresAt <= now)) return undefined
  return isJsonObject(value) ? value : undefined
}
