/** Map of bounded size with eviction of the least recently used entry. */
export type Lru<K, V> = {
  /** Returns the value of a key and marks it as used. */
  get(key: K): V | undefined
  set(key: K, value: V): void
  delete(key: K): void
  readonly size: number
}

/** Creates a map of at most `capacity` entries. */
export function createLru<K, V>(capacity: number): Lru<K, V> {
  // A Map preserves the insertion order: the first key is the least recently used.
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
