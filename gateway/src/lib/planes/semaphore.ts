import { acquireLock, releaseLock } from './lock.ts'
import type { Memory, Region } from './memory.ts'

/** Semaphore of all data planes. */
export type Semaphore = {
  /** Sets the number of slots; infinite for no limit. */
  resize(max: number): void
  /** Acquires a slot unless all are occupied. Waiters come first. */
  tryAcquire(): boolean
  /**
   * Calls `enter` with a slot, later. Waiters of a data plane are served in order, data planes in turn.
   * Cancelled waiters are skipped.
   */
  wait(waiter: Waiter): void
  release(): void
}

export type Waiter = { enter(): void; isCancelled(): boolean }

// Words of the region: the lock and its description, the data plane served last, and per data plane the
// occupied slots, the waiters, and the slots assigned to waiters that have not entered yet (they count as
// occupied).
const servedLast = 4
const columns = 6
const columnWords = 3
const waitingWord = 1
const assignedWord = 2

/** Start of the names of regions with a semaphore. */
export const semaphorePrefix = 'semaphore/'

/** Interval of the search for slots of a failed data plane, while something waits. */
const searchMs = 100
const cleanupInterval = 1_000

/** Creates a semaphore without limit. */
export function createSemaphore(memory: Memory, name: string): Semaphore {
  const { plane, planes } = memory
  const words = columns + columnWords * planes
  const region = memory.region(semaphorePrefix + name, 4 * (words + (words % 2)))
  const isShared = planes > 1
  const own = columns + columnWords * plane
  const queue = createQueue()
  let max = Number.POSITIVE_INFINITY
  let isStarted = false
  let isWatching = false

  function lock(): Int32Array {
    const { int32 } = region
    if (isShared) acquireLock(int32, 0, plane)
    if (!isStarted) {
      isStarted = true
      int32.fill(0, own, own + columnWords)
    }
    return int32
  }

  /** Assigns free slots to waiters, releases the lock, and serves the waiters. */
  function unlock(int32: Int32Array): void {
    const assigned = assignFree(int32, planes, max)
    if (isShared) releaseLock(int32, 0)
    if (!assigned) return
    for (let other = 0; isShared && other < planes; other++) {
      const index = columns + columnWords * other + assignedWord
      if (other !== plane && Atomics.load(int32, index) > 0) Atomics.notify(int32, index)
    }
    serve(int32)
  }

  /** Passes the slots assigned to this data plane to its waiters, and returns slots without a waiter. */
  function serve(int32: Int32Array): void {
    let slots = Atomics.exchange(int32, own + assignedWord, 0)
    if (slots === 0) return
    const entering: Waiter[] = []
    for (; slots > 0; slots -= 1) {
      const waiter = queue.next()
      if (waiter === undefined) break
      entering.push(waiter)
    }
    // Cancelled waiters have left the queue, too.
    lock()
    add(int32, own, -slots)
    int32[own + waitingWord] = Math.max(0, queue.size() - Atomics.load(int32, own + assignedWord))
    unlock(int32)
    for (const waiter of entering) waiter.enter()
  }

  /** Waits for slots released by other data planes. */
  function watch(): void {
    if (!isShared || isWatching || queue.size() === 0) return
    isWatching = true
    const { async, value } = Atomics.waitAsync(region.int32, own + assignedWord, 0, searchMs)
    const woken = () => {
      isWatching = false
      unlock(lock())
      serve(region.int32)
      watch()
    }
    if (async) void value.then(woken)
    else queueMicrotask(woken)
  }

  return {
    resize(to) {
      max = to
      if (queue.size() > 0) unlock(lock())
    },
    tryAcquire() {
      const int32 = lock()
      assignFree(int32, planes, max)
      const isFree = occupied(int32, planes) < max
      if (isFree) add(int32, own, 1)
      unlock(int32)
      return isFree
    },
    wait(waiter) {
      queue.push(waiter)
      const int32 = lock()
      add(int32, own + waitingWord, 1)
      unlock(int32)
      watch()
    },
    release() {
      const int32 = lock()
      add(int32, own, -1)
      unlock(int32)
    },
  }
}

/**
 * Clears the slots and waiters of a data plane that has failed. Others search for free slots while they wait.
 */
export function clearSemaphore({ int32 }: Region, plane: number): void {
  const first = columns + columnWords * plane
  acquireLock(int32, 0, plane)
  int32.fill(0, first, first + columnWords)
  releaseLock(int32, 0)
}

/** Assigns free slots to waiters, data planes in turn; requires the lock. Returns whether there was one. */
function assignFree(int32: Int32Array, planes: number, max: number): boolean {
  let assigned = false
  let free = max - occupied(int32, planes)
  for (let passed = 0; free > 0 && passed < planes; ) {
    const turn = ((int32[servedLast] ?? 0) + 1) % planes
    int32[servedLast] = turn
    const place = columns + columnWords * turn
    passed += 1
    if ((int32[place + waitingWord] ?? 0) === 0) continue
    add(int32, place + waitingWord, -1)
    add(int32, place, 1)
    Atomics.add(int32, place + assignedWord, 1)
    assigned = true
    free -= 1
    passed = 0
  }
  return assigned
}

function occupied(int32: Int32Array, planes: number): number {
  let sum = 0
  for (let other = 0; other < planes; other++) sum += int32[columns + columnWords * other] ?? 0
  return sum
}

function add(int32: Int32Array, index: number, by: number): void {
  int32[index] = (int32[index] ?? 0) + by
}

/** FIFO queue without cancelled waiters. */
function createQueue() {
  let waiters: Waiter[] = []
  let first = 0
  return {
    size: () => waiters.length - first,
    push(waiter: Waiter) {
      // Cancelled waiters would accumulate while all slots are occupied.
      if (waiters.length >= cleanupInterval && waiters.length % cleanupInterval === 0) {
        waiters = waiters.slice(first).filter((other) => !other.isCancelled())
        first = 0
      }
      waiters.push(waiter)
    },
    next(): Waiter | undefined {
      while (first < waiters.length) {
        const waiter = waiters[first]
        first += 1
        if (waiter?.isCancelled() === false) return waiter
      }
      waiters = []
      first = 0
      return undefined
    },
  }
}
