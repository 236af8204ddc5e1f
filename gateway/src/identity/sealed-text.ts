import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const nonceBytes = 12
const tagBytes = 16

/**
 * Encrypts and authenticates a text with AES-256-GCM under a key of 32 bytes. Returns base64url. `nonce` has
 * 12 bytes, and must not be that of another text under the key.
 */
export function sealText(key: Uint8Array, text: string, nonce: Uint8Array = randomBytes(nonceBytes)): string {
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const sealed = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
  return Buffer.concat(sealed).toString('base64url')
}

/** Reads a text of `sealText`; undefined if it is forged, damaged, or sealed with another key. */
export function unsealText(key: Uint8Array, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url')
  // The decoder accepts several encodings of a value; only the canonical one is valid.
  if (bytes.length < nonceBytes + tagBytes || bytes.toString('base64url') !== sealed) return undefined
  const options = { authTagLength: tagBytes }
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), options)
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  try {
    const text = decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8')
    return text + decipher.final('utf8')
  } catch {
    return undefined
  }
}
