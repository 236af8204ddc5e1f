/** Counts work in characters; returns a promise if other work should run first. */
export type CooperativeYield = (chars: number) => Promise<void> | undefined

/** Renaming or filtering this amount takes about 5 ms. */
const charsBetweenYields = 64 * 1024
/** Minimum work per item. */
const charsOfItem = 100

/** Shorter lists take a few milliseconds and are processed synchronously. */
export const largeListChars = 64 * 1024

/** Creates a counter that yields to the event loop during work on large lists. */
export function createCooperativeYield(): CooperativeYield {
  let done = 0
  return (chars) => {
    done += chars + charsOfItem
    if (done < charsBetweenYields) return undefined
    done = 0
    return new Promise((resolve) => setImmediate(resolve))
  }
}
