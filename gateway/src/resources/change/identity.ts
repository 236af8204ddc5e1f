import { createHash } from 'node:crypto'

/**
 * Namespace of the ids of named records (RFC 9562 section 5.5). Ids in databases and scripts depend on it: it
 * never changes.
 */
const namespace = Buffer.from('b3d5f0c87a1e4c5f9d2648a1e07c93d4', 'hex')

/** Id of a named record: the same in every mode and at every replica. */
export function namedId(kind: string, name: string): string {
  const bytes = createHash('sha1')
    .update(namespace)
    .update(JSON.stringify([kind, name]))
    .digest()
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex', 0, 16)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Normalises an id of a client; undefined if it is not a UUID. */
export function readUuid(text: string): string | undefined {
  return uuidForm.test(text) ? text.toLowerCase() : undefined
}
