import type { Secret } from './core.ts'

/** Text of an entry of a Secret; undefined if it is absent. `stringData` takes precedence, as in the API. */
export function secretText({ data = {}, stringData = {} }: Secret, key: string): string | undefined {
  const plain = Object.hasOwn(stringData, key) ? stringData[key] : undefined
  if (plain !== undefined) return plain
  const encoded = Object.hasOwn(data, key) ? data[key] : undefined
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8')
}

/**
 * Credential in an entry of a Secret, without the scheme `Bearer`: the location of the credential adds a
 * prefix of its own.
 */
export function secretCredential(secret: Secret, key: string): string | undefined {
  return secretText(secret, key)
    ?.trim()
    .replace(/^bearer +/i, '')
}

/** Names of the entries of a Secret, sorted. */
export function secretKeys({ data = {}, stringData = {} }: Secret): string[] {
  return [...new Set([...Object.keys(data), ...Object.keys(stringData)])].sort()
}
