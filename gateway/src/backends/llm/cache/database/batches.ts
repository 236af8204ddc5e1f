/** Items that arrive while a batch is in progress are processed together in the next one. */
export type Batches<Item, Result> = {
  /** Resolves with the result of the item, or rejects with the error of its batch. */
  add(item: Item): Promise<Result>
  /** Resolves if no item waits. */
  idle(): Promise<void>
}

export type BatchOptions<Item, Result> = {
  readonly mostItems: number
  /** A batch has at least one item. */
  readonly mostBytes: number
  sizeOf(item: Item): number
  /** Returns the results in the order of the items. */
  run(items: readonly Item[]): Promise<readonly Result[]>
}

type Waiting<Item, Result> = { readonly item: Item; readonly done: PromiseWithResolvers<Result | undefined> }

/** Processes one batch at a time. The callers limit the number of items. */
export function createBatches<Item, Result>(
  options: BatchOptions<Item, Result>,
): Batches<Item, Result | undefined> {
  const { mostItems, mostBytes, sizeOf, run } = options
  let waiting: Waiting<Item, Result>[] = []
  let running: Promise<void> | undefined

  function nextBatch(): Waiting<Item, Result>[] {
    let count = 0
    let bytes = 0
    for (const { item } of waiting) {
      bytes += sizeOf(item)
      if (count > 0 && (count === mostItems || bytes > mostBytes)) break
      count += 1
    }
    const batch = waiting.slice(0, count)
    waiting = waiting.slice(count)
    return batch
  }

  async function runAll(): Promise<void> {
    // Items of the same turn of the event loop are one batch.
    await undefined
    while (waiting.length > 0) {
      const batch = nextBatch()
      try {
        const results = await run(batch.map(({ item }) => item))
        for (const [index, { done }] of batch.entries()) done.resolve(results[index])
      } catch (error) {
        for (const { done } of batch) done.reject(error)
      }
    }
    running = undefined
  }

  return {
    add(item) {
      const done = Promise.withResolvers<Result | undefined>()
      waiting.push({ item, done })
      running ??= runAll()
      return done.promise
    },
    idle: async () => running,
  }
}
