import type { StoreMeter } from '../../../telemetry/metrics/llm.ts'

/** A complete response of a provider in the API of the client, before guards. */
export type StoredResponse = {
  readonly contentType: string
  readonly body: Buffer
  /** The model that the provider reported. */
  readonly model: string | undefined
  /** `Clock.monotonic()`. */
  readonly storedAt: number
}

export type StoreLimits = { readonly maxBytes: number; readonly maxEntries: number }

/**
 * Responses of one data plane by key. A response may have further keys: those of other forms of its request.
 */
export type ResponseStore = {
  get(key: string): StoredResponse | undefined
  set(key: string, response: StoredResponse): void
  /** Adds a key to the response of another key. */
  link(key: string, other: string): void
  delete(key: string): void
  /** Reserves memory for a response that is being received; false beyond the limit. */
  reserve(bytes: number): boolean
  release(bytes: number): void
}

type Entry = { readonly response: StoredResponse; readonly size: number; readonly keys: string[] }

/** Memory of an entry besides its body: keys, header, objects. */
const entryOverhead = 1024

/** Keys of a response. */
const maxKeys = 4

/**
 * Creates a store. Beyond a limit the least recently used responses are removed. Responses that are being
 * received have a limit of their own, of the same size.
 */
export function createResponseStore({ maxBytes, maxEntries }: StoreLimits, meter: StoreMeter): ResponseStore {
  // A Set preserves the insertion order: the first entry is the least recently used.
  const entries = new Set<Entry>()
  const byKey = new Map<string, Entry>()
  let bytes = 0
  let reserved = 0

  function remove(entry: Entry | undefined): void {
    if (entry === undefined || !entries.delete(entry)) return
    for (const key of entry.keys) byKey.delete(key)
    bytes -= entry.size
  }

  function removeOldest(): void {
    for (const entry of entries) {
      remove(entry)
      return
    }
  }

  const report = () => meter.stored(bytes, entries.size)
  return {
    get(key) {
      const entry = byKey.get(key)
      if (entry === undefined) return undefined
      entries.delete(entry)
      entries.add(entry)
      return entry.response
    },
    set(key, response) {
      remove(byKey.get(key))
      const size = response.body.byteLength + entryOverhead
      if (size <= maxBytes) {
        while (entries.size >= maxEntries || bytes + size > maxBytes) removeOldest()
        const entry = { response, size, keys: [key] }
        entries.add(entry)
        byKey.set(key, entry)
        bytes += size
      }
      report()
    },
    link(key, other) {
      const entry = byKey.get(other)
      if (entry === undefined || entry.keys.length >= maxKeys || byKey.has(key)) return
      entry.keys.push(key)
      byKey.set(key, entry)
    },
    delete(key) {
      remove(byKey.get(key))
      report()
    },
    reserve(amount) {
      if (reserved + amount > maxBytes) return false
      reserved += amount
      return true
    },
    release(amount) {
      reserved -= amount
    },
  }
}
