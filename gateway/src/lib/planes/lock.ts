import type { Region } from './memory.ts'

// Layout of a region with locks. The first 16 bytes describe its locks; they are zero in a region without
// locks.
//   int32[0]  a lock
//   int32[1]  number of further locks
//   int32[2]  index of the first further lock
//   int32[3]  distance between further locks
// A lock is 0 if free, `plane + 1` if a data plane has acquired it, and `-(plane + 1)` if others wait for it.

/** Attempts before a wait: a critical section lasts less than a microsecond. */
const spins = 100
/** Bounds a wait whose notification was lost with a failed data plane. */
const waitMs = 5
/** A failed data plane is replaced within a second, and its locks are released. */
const mostWaits = 2_000

/**
 * Acquires a lock of shared memory. Critical sections are short, synchronous, without allocation, and do not
 * acquire the lock again. Several locks are acquired in the order of region name and index.
 *
 * @throws Error if another data plane does not release the lock within 10 seconds.
 */
export function acquireLock(cells: Int32Array, index: number, plane: number): void {
  if (Atomics.compareExchange(cells, index, 0, plane + 1) !== 0) waitForLock(cells, index, plane + 1)
}

/** Releases a lock that this data plane has acquired. */
export function releaseLock(cells: Int32Array, index: number): void {
  if (Atomics.exchange(cells, index, 0) < 0) Atomics.notify(cells, index, 1)
}

function waitForLock(cells: Int32Array, index: number, own: number): void {
  for (let spin = 0; spin < spins; spin++) {
    if (Atomics.compareExchange(cells, index, 0, own) === 0) return
  }
  let held = 0
  for (let waits = 0; waits < mostWaits; waits++) {
    // Negative, because other data planes may wait too.
    held = Atomics.compareExchange(cells, index, 0, -own)
    // The data plane that this one replaces failed in the critical section.
    if (held === 0 || Math.abs(held) === own) return
    if (held > 0 && Atomics.compareExchange(cells, index, held, -held) !== held) continue
    Atomics.wait(cells, index, -Math.abs(held), waitMs)
  }
  throw new Error(`data plane ${Math.abs(held) - 1} has not released a lock for 10 s`)
}

/** Describes the locks of a region beyond the one at `int32[0]`. */
export function describeLocks(
  cells: Int32Array,
  { first, count, distance }: { first: number; count: number; distance: number },
): void {
  cells[3] = distance
  cells[2] = first
  cells[1] = count
}

/** Releases the locks that a failed data plane has acquired. */
export function releaseLocksOf(region: Region, plane: number): void {
  const { int32: cells } = region
  if (cells.length < 4) return
  const [, count = 0, first = 0, distance = 0] = cells
  releaseFailed(cells, 0, plane + 1)
  for (let lock = 0; lock < count; lock++) releaseFailed(cells, first + lock * distance, plane + 1)
}

function releaseFailed(cells: Int32Array, index: number, own: number): void {
  if (Math.abs(Atomics.load(cells, index)) !== own) return
  Atomics.store(cells, index, 0)
  if (cells.buffer instanceof SharedArrayBuffer) Atomics.notify(cells, index)
}
