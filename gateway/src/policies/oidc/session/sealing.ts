import { createHash, hkdfSync } from 'node:crypto'
import { sealText, unsealText } from '../../../identity/sealed-text.ts'
import { type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'

/** Encrypted values in cookies. Each purpose has its own keys. */
export type Sealing = {
  seal(value: JsonObject): string
  /** Undefined for a value that is forged, or sealed for another purpose, policy or secret. */
  unseal(text: string): JsonObject | undefined
}

/** Creates the sealing of a purpose: the first of `secrets` seals, all of them unseal. */
export function createSealing(
  secrets: readonly [Uint8Array, ...Uint8Array[]],
  purpose: 'session' | 'login',
  policy: string,
): Sealing {
  // Node limits the info to 1,024 bytes; RFC 5869 does not.
  const info = createHash('sha256')
    .update(JSON.stringify([purpose, policy]))
    .digest('base64url')
  const keyOf = (secret: Uint8Array) =>
    Buffer.from(hkdfSync('sha256', secret, '', `tollgate/oidc/1/${info}`, 32))
  const [current, ...previous] = secrets
  const key = keyOf(current)
  const keys = [key, ...previous.map(keyOf)]
  return {
    seal: (value) => sealText(key, JSON.stringify(value)),
    unseal(text) {
      for (const candidate of keys) {
        const content = unsealText(candidate, text)
        if (content !== undefined) return parseJsonObject(content)
      }
      return undefined
    },
  }
}
