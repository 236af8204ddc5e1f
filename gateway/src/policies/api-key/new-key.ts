const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
/** 238 bits. */
const length = 40

/** Source of cryptographically secure random bytes. */
export type RandomBytes = (count: number) => Uint8Array

/** Creates a virtual key: `tg-` and 40 letters and digits, each equally likely. */
export function createNewKey(randomBytes: RandomBytes): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // Bytes above the largest multiple would favour the first characters.
      if (byte < 4 * alphabet.length && text.length < length) text += alphabet[byte % alphabet.length] ?? ''
    }
  }
  return `tg-${text}`
}
