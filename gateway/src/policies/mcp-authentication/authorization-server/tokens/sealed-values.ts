import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'

/** Kinds of sealed values. Each kind has a key of its own, so that no value passes for another kind. */
const purposes = ['client', 'request', 'login', 'code', 'access', 'refresh'] as const
export type Purpose = (typeof purposes)[number]

/** Values that the gateway hands out and reads again later, instead of storing them. */
export type SealedValues = {
  /** Seals a value that expires at `expiresAt`, in milliseconds since the epoch; undefined never expires. */
  seal(purpose: Purpose, value: JsonObject, expiresAt: number | undefined): string
  /** The value; undefined for text that was not sealed with this key for this purpose and issuer, was changed, or has expired. */
  unseal(purpose: Purpose, text: string): JsonObject | undefined
}

const nonceBytes = 12
const tagBytes = 16
const maxLength = 24 * 1024

/** `settings`: settings that values depend on; under other settings they are not read. Registrations depend on none. */
export type SealingContext = { issuer: string; settings: string }

/**
 * Seals values with AES-256-GCM under keys derived from the session key (HKDF, RFC 5869). The issuer is part of the
 * derivation: two endpoints with the same session key do not accept values of each other.
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
      // One value has one spelling; the decoder accepts many.
      if (sealed.length < nonceBytes + tagBytes || sealed.toString('base64url') !== text) return undefined
      return current(opened(keyOf(purpose), sealed), clock.now())
    },
  }
}

function deriveKey(sessionKey: Buffer, purpose: Purpose, { issuer, settings }: SealingContext): Buffer {
  const parts = purpose === 'client' ? [purpose, issuer] : [purpose, issuer, settings]
  // RFC 5869 sets no limit for the info, Node does: 1,024 bytes.
  const info = createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
  return Buffer.from(hkdfSync('sha256', sessionKey, '', `tollgate/mcp-front/1/${info}`, 32))
}

function opened(key: Buffer, sealed: Buffer): unknown {
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

function current(content: unknown, now: number): JsonObject | undefined {
  if (!isJsonObject(content)) return undefined
  const { v: value, e: expiresAt } = content
  if (expiresAt !== undefined && (typeof expiresAt !== 'number' || expiresAt <= now)) return undefined
  return isJsonObject(value) ? value : undefined
}
