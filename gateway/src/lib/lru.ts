/** A map of bounded size: where there is no room, the entry that was not used for longest goes. */
export type Lru<K, V> = {
  /** The value of a key, which counts as used now. */
  get(key: K): V | undefined
  set(key: K, value: V): void
  delete(key: K): void
  readonly size: number
}

/** Holds at most `capacity` entries. */
export function createLru<K, V>(capacity: number): Lru<K, V> {
  // A Map keeps the order of insertion: the first key is always the one that waited longest.
  const entries = new Map<K, V>()

  function dropOldest() {
    for (const key of entries.keys()) {
      entries.delete(key)
      return
    }
  }

  return {
    get(key) {
      const value = entries.get(key)
      if (value === undefined) return undefined
      entries.delete(key)
      entries.set(key, value)
      return value
    },
    set(key, value) {
      if (!entries.delete(key) && entries.size >= capacity) dropOldest()
      entries.set(key, value)
    },
    delete(key) {
      entries.delete(key)
    },
    get size() {
      return entries.size
    },
  }
}
