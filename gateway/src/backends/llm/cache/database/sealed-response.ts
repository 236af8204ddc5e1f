import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { StoredResponse } from '../store.ts'

/** A stored response without its time. */
export type SealedContent = Omit<StoredResponse, 'storedAt'>

/** The row of a response: its key in the database, and the key of its content. */
export type RowKeys = { readonly row: string; readonly content: Uint8Array }

/** The place of a response: keys of different places and secrets are different. */
export type RowScope = {
  /** Identity of the target. */
  readonly place: string
  /** Session key of the replicas; undefined without one. */
  readonly secret: string | undefined
}

const nonceBytes = 12
const tagBytes = 16

/**
 * Derives the keys of a row from the digest of a request, which the database does not contain: without the
 * request of a client, a row can be neither read nor replaced by another response.
 */
export function rowKeysOf(digest: string, { place, secret = '' }: RowScope): RowKeys {
  const derive = (use: string) =>
    createHmac('sha256', secret)
      .update(JSON.stringify([`tollgate/cache/1/${use}`, place, digest]))
      .digest()
  return { row: derive('row').toString('base64url'), content: derive('content') }
}

/** Encrypts a response with AES-256-GCM: nonce, tag, then a JSON line with its properties, and the body. */
export function sealResponse(key: Uint8Array, { contentType, model, body }: SealedContent): Uint8Array {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const head = cipher.update(`${JSON.stringify([contentType, model ?? null])}\n`)
  const parts = [head, cipher.update(body), cipher.final()]
  // Memory of its own: messages to threads copy all of the memory behind a part.
  const sealed = Buffer.allocUnsafeSlow(nonceBytes + tagBytes + head.length + body.length)
  let at = nonce.copy(sealed)
  at += cipher.getAuthTag().copy(sealed, at)
  for (const part of parts) at += part.copy(sealed, at)
  return sealed
}

/** Decrypts a response; undefined if it is damaged or belongs to another key. */
export function openResponse(key: Uint8Array, sealed: Uint8Array): SealedContent | undefined {
  if (sealed.byteLength < nonceBytes + tagBytes) return undefined
  const tagEnd = nonceBytes + tagBytes
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  })
  decipher.setAuthTag(sealed.subarray(nonceBytes, tagEnd))
  try {
    const opened = decipher.update(sealed.subarray(tagEnd))
    decipher.final()
    return readContent(opened)
  } catch {
    return undefined
  }
}

function readContent(opened: Buffer): SealedContent | undefined {
  const end = opened.indexOf('\n')
  const head: unknown = JSON.parse(opened.toString('utf8', 0, end))
  if (!Array.isArray(head)) return undefined
  const [contentType, model]: unknown[] = head
  if (typeof contentType !== 'string') return undefined
  return {
    contentType,
    model: typeof model === 'string' ? model : undefined,
    body: opened.subarray(end + 1),
  }
}
