/** Counts work in characters; returns a promise to wait for where other work should go on first. */
export type CooperativeYield = (chars: number) => Promise<void> | undefined

/** Renaming or filtering so much of a list takes about 5 ms. */
const charsBetweenYields = 64 * 1024
/** Work for an item, however short it is. */
const charsOfItem = 100

/** Work on a shorter list takes some milliseconds, and is done at once. */
export const largeListChars = 64 * 1024

/** Splits work on a long list, so that it does not stop the event loop. */
export function createCooperativeYield(): CooperativeYield {
  let done = 0
  return (chars) => {
    done += chars + charsOfItem
    if (done < charsBetweenYields) return undefined
    done = 0
    return new Promise((resolve) => setImmediate(resolve))
  }
}
