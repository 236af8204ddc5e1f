import { createHmac, timingSafeEqual } from 'node:crypto'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { SealedKind } from './object-kinds.ts'
import { createSealedIds, digest, keyOf } from './sealed-ids.ts'

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
  /** Id of an object in a response: that of the provider with a MAC of kind, id and owner. */
  sealObject(id: string, kind: SealedKind, owner: string): string
  /** The id of the provider; undefined for ids of other kinds and owners, and other texts. */
  openObject(id: string, kind: SealedKind, owner: string): string | undefined
}

const purpose = 'llm-responses'
/** 128 bits as text. */
const macLength = 22

/** The id of the provider in the id of an item, without a check; undefined for other forms. */
export function withoutMac(text: string): string | undefined {
  return sealedItem.exec(text)?.[1]
}

/** Prefix, id and MAC; ids of providers have no second underscore. */
const sealedItem = new RegExp(`^([a-z]+_[\\w-]+)_[\\w-]{${macLength}}$`)

/** Creates ids that name response and owner. */
export function createResponseIds(context: Pick<CompileContext, 'sessionKey' | 'processKey'>): ResponseIds {
  const ids = createSealedIds(context, { purpose, prefix: 'resp_' })
  const itemKey = keyOf(context, `${purpose}/1/item`)
  const macOf = (id: string, kind: SealedKind, owner: string) =>
    createHmac('sha256', itemKey)
      .update(JSON.stringify(kind === 'item' ? [id, digest(owner)] : [kind, id, digest(owner)]))
      .digest('base64url')
      .slice(0, macLength)
  return {
    sealObject: (id, kind, owner) => `${id}_${macOf(id, kind, owner)}`,
    openObject(text, kind, owner) {
      const id = text.slice(0, -macLength - 1)
      const mac = text.slice(-macLength)
      if (id === '' || text[id.length] !== '_' || !/^[\w-]+$/.test(mac)) return undefined
      return timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(id, kind, owner))) ? id : undefined
    },
    seal: ({ id, requestModel, configuredModel, place }, owner) =>
      ids.seal([id, requestModel, configuredModel, place], owner),
    open(text, owner) {
      const [id, requestModel, configuredModel, place] = ids.open(text, owner) ?? []
      if (id === undefined || requestModel === undefined) return undefined
      if (configuredModel === undefined || place === undefined) return undefined
      return { id, requestModel, configuredModel, place }
    },
  }
}
