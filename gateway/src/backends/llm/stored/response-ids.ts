import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { sealText, unsealText } from '../../../identity/sealed-text.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Target } from '../models/target.ts'

/** A response that a provider stores. */
export type StoredResponse = {
  /** Id at the provider. */
  readonly id: string
  /** Model as requested by the client that created it, and the configured one that served it. */
  readonly requestModel: string
  readonly configuredModel: string
  /** `placeOf` its target. */
  readonly place: string
}

/** Ids of stored responses for clients. They contain everything that is needed to find the response. */
export type ResponseIds = {
  seal(response: StoredResponse, owner: string): string
  /** Undefined for ids of other owners and other texts. */
  open(id: string, owner: string): StoredResponse | undefined
  /** Id of an item of a response: that of the provider with a MAC of id and owner. */
  sealItem(id: string, owner: string): string
  /** The id of the provider; undefined for ids of other owners and other texts. */
  openItem(id: string, owner: string): string | undefined
}

const prefix = 'resp_'
/** 128 bits as text. */
const macLength = 22
/** The longest models of a client and of the configuration, escaped, and four thirds of their bytes. */
const maxIdLength = 10_000

/**
 * Creates ids that name response and owner, encrypted with the session key, so that every replica with the
 * key reads them after a restart. Without a session key they end with the process.
 */
export function createResponseIds({
  sessionKey,
  processKey,
}: Pick<CompileContext, 'sessionKey' | 'processKey'>): ResponseIds {
  const keyFor = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', sessionKey ?? processKey, '', `tollgate/llm-responses/1/${purpose}`, 32))
  const key = keyFor('id')
  const nonceKey = keyFor('nonce')
  const itemKey = keyFor('item')
  const macOf = (id: string, owner: string) =>
    createHmac('sha256', itemKey)
      .update(JSON.stringify([id, digest(owner)]))
      .digest('base64url')
      .slice(0, macLength)
  return {
    sealItem: (id, owner) => `${id}_${macOf(id, owner)}`,
    openItem(text, owner) {
      const id = text.slice(0, -macLength - 1)
      const mac = text.slice(-macLength)
      if (id === '' || text[id.length] !== '_' || !/^[\w-]+$/.test(mac)) return undefined
      return timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(id, owner))) ? id : undefined
    },
    seal({ id, requestModel, configuredModel, place }, owner) {
      const text = JSON.stringify([id, requestModel, configuredModel, place, digest(owner)])
      // A response has one id, because clients compare ids: the nonce is derived from the text (RFC 5297).
      const nonce = createHmac('sha256', nonceKey).update(text).digest().subarray(0, 12)
      return prefix + sealText(key, text, nonce)
    },
    open(text, owner) {
      if (!text.startsWith(prefix) || text.length > maxIdLength) return undefined
      const opened = unsealText(key, text.slice(prefix.length))
      if (opened === undefined) return undefined
      const parts: unknown = JSON.parse(opened)
      if (!Array.isArray(parts) || !parts.every((part) => typeof part === 'string')) return undefined
      const [id, requestModel, configuredModel, place, sealedOwner] = parts
      if (id === undefined || requestModel === undefined || configuredModel === undefined) return undefined
      if (place === undefined || sealedOwner !== digest(owner)) return undefined
      return { id, requestModel, configuredModel, place }
    },
  }
}

/** The service of a target, which stores responses of all its models. */
export function placeOf({ provider, origin, basePath }: Target): string {
  return digest(`${provider.name} ${origin}${basePath}`)
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
