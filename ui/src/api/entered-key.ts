import { useSyncExternalStore } from 'react'

let entered = ''
const listeners = new Set<() => void>()

/**
 * The virtual key of the user of this page, for calls through the forwarder and for snippets. It exists in memory only: a
 * reload forgets it.
 */
export function useEnteredKey(): [key: string, enter: (key: string) => void] {
  return [useSyncExternalStore(subscribe, enteredKey), enterKey]
}

export function enteredKey(): string {
  return entered
}

export function enterKey(key: string): void {
  entered = key.trim()
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
