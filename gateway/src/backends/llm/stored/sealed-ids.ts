import { createHash, createHmac, hkdfSync } from 'node:crypto'
import { sealText, unsealText } from '../../../identity/sealed-text.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Target } from '../models/target.ts'

/** Ids for clients that contain the facts about an object of a provider, and its owner. */
export type SealedIds = {
  seal(parts: readonly string[], owner: string): string
  /** Undefined for ids of other owners and other texts. */
  open(id: string, owner: string): readonly string[] | undefined
}

/** The longest models of a client and of the configuration, escaped, and four thirds of their bytes. */
const maxIdLength = 10_000

/**
 * Creates ids that name object and owner, encrypted with the session key, so that every replica with the key
 * reads them after a restart. Without a session key they end with the process. `purpose` separates the keys
 * of different objects.
 */
export function createSealedIds(
  context: Pick<CompileContext, 'sessionKey' | 'processKey'>,
  { purpose, prefix }: { purpose: string; prefix: string },
): SealedIds {
  const key = keyOf(context, `${purpose}/1/id`)
  const nonceKey = keyOf(context, `${purpose}/1/nonce`)
  return {
    seal(parts, owner) {
      const text = JSON.stringify([...parts, digest(owner)])
      // An object has one id, because clients compare ids: the nonce is derived from the text (RFC 5297).
      const nonce = createHmac('sha256', nonceKey).update(text).digest().subarray(0, 12)
      return prefix + sealText(key, text, nonce)
    },
    open(text, owner) {
      if (!text.startsWith(prefix) || text.length > maxIdLength) return undefined
      const opened = unsealText(key, text.slice(prefix.length))
      if (opened === undefined) return undefined
      const parts: unknown = JSON.parse(opened)
      if (!Array.isArray(parts) || !parts.every((part) => typeof part === 'string')) return undefined
      return parts.at(-1) === digest(owner) ? parts.slice(0, -1) : undefined
    },
  }
}

/** The service of a target, which stores the objects of all its models. */
export function placeOf({ provider, origin, basePath }: Target): string {
  return digest(`${provider.name} ${origin}${basePath}`)
}

/** A short digest of a text. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

/** The key of a use, derived from the session key, or from that of the process. */
export function keyOf(
  { sessionKey, processKey }: Pick<CompileContext, 'sessionKey' | 'processKey'>,
  use: string,
): Buffer {
  return Buffer.from(hkdfSync('sha256', sessionKey ?? processKey, '', `tollgate/${use}`, 32))
}
