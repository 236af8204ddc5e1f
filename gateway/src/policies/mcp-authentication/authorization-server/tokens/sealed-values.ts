import { createHash, hkdfSync } from 'node:crypto'
import { sealText, unsealText } from '../../../../identity/sealed-text.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../../../lib/json/json.ts'

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
      const content = { v: value, ...(expiresAt === undefined ? {} : { e: expiresAt }) }
      return sealText(keyOf(purpose), JSON.stringify(content))
    },
    unseal(purpose, text) {
      if (text.length > maxLength) return undefined
      const content = unsealText(keyOf(purpose), text)
      return content === undefined ? undefined : unexpired(parseJsonObject(content), clock.now())
    },
  }
}

function deriveKey(sessionKey: Buffer, purpose: Purpose, { issuer, settings }: SealingContext): Buffer {
  const parts = purpose === 'client' ? [purpose, issuer] : [purpose, issuer, settings]
  // Node limits the info to 1,024 bytes; RFC 5869 does not.
  const info = createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
  return Buffer.from(hkdfSync('sha256', sessionKey, '', `tollgate/mcp-front/1/${info}`, 32))
}

function unexpired(content: JsonObject | undefined, now: number): JsonObject | undefined {
  if (content === undefined) return undefined
  const { v: value, e: expiresAt } = content
  if (expiresAt !== undefined && (typeof expiresAt !== 'number' || expiresAt <= now)) return undefined
  return isJsonObject(value) ? value : undefined
}
