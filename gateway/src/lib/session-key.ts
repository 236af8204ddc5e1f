/** Parses a session key of 64 hexadecimal digits; undefined for anything else. */
export function readSessionKey(text: string): Buffer | undefined {
  return /^[0-9a-fA-F]{64}$/.test(text) ? Buffer.from(text, 'hex') : undefined
}
