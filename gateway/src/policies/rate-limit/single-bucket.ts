import { acquireLock, releaseLock } from '../../lib/planes/lock.ts'
import type { Memory } from '../../lib/planes/memory.ts'
import {
  type Bucket,
  type ConfiguredRate,
  consume,
  createBucket,
  isEqual,
  type Rate,
  refillBucket,
  returnUnit,
} from './bucket.ts'
import type { BucketReference, Buckets } from './buckets.ts'

// Layout of the memory: int32[0] is the lock, then float64 cells.
const usedAt = 2
const refilledAt = 3
const capacityAt = 4
const refillAt = 5
/** 0 before the first request. */
const intervalAt = 6
/** Time of the compilation of the rate. */
const sinceAt = 7
const bytes = 64

const onlyReference: BucketReference = { position: 0, generation: 0, key: undefined }

/**
 * The bucket of a limit without a key. Its rate is that of the last admitted request: compilation alone does
 * not activate a rate, and a request that started before a reload is charged at the current rate, because the
 * old, smaller capacity would cap the usage of the larger one.
 */
export function createSingleBucket(memory: Memory, name: string, startedAtMs: number): Buckets {
  const region = memory.region(name, bytes)
  const bucket = createBucket(startedAtMs)
  const inForce = { capacity: 0, refill: 0, intervalMs: 0 }
  const isShared = memory.planes > 1

  function acquire(): void {
    if (isShared) acquireLock(region.int32, 0, memory.plane)
    const cells = region.float64
    inForce.intervalMs = cells[intervalAt] ?? 0
    if (inForce.intervalMs === 0) {
      bucket.used = 0
      bucket.refilledAt = startedAtMs
      return
    }
    inForce.capacity = cells[capacityAt] ?? 0
    inForce.refill = cells[refillAt] ?? 0
    bucket.used = cells[usedAt] ?? 0
    bucket.refilledAt = cells[refilledAt] ?? 0
  }

  /** Activates a rate, unless it is older than the one in force. Returns the rate in force. */
  function activate(rate: ConfiguredRate): Rate {
    const cells = region.float64
    // Data planes activate a configuration one after another.
    if (isEqual(inForce, rate) || rate.sinceMs < (cells[sinceAt] ?? 0)) return inForce
    // The previous rate applies up to the reload.
    if (inForce.intervalMs !== 0) refillBucket(bucket, inForce, rate.sinceMs)
    cells[capacityAt] = rate.capacity
    cells[refillAt] = rate.refill
    cells[intervalAt] = rate.intervalMs
    cells[sinceAt] = rate.sinceMs
    return rate
  }

  function release(): void {
    const cells = region.float64
    // A data plane that fails between the two must not refill twice.
    cells[refilledAt] = bucket.refilledAt
    cells[usedAt] = bucket.used
    if (isShared) releaseLock(region.int32, 0)
  }

  return {
    bucket,
    select() {},
    lock(rate, nowMs) {
      acquire()
      refillBucket(bucket, activate(rate), nowMs)
      return true
    },
    makeRoom() {},
    unlock: release,
    settle() {},
    reference: () => onlyReference,
    charge(_, amount, nowMs) {
      acquire()
      refillBucket(bucket, inForce, nowMs)
      consume(bucket, inForce, amount)
      release()
    },
    giveBack(_, takenAtMs) {
      acquire()
      returnUnit(bucket, takenAtMs)
      release()
    },
    positions: () => [0],
    read(): Bucket {
      acquire()
      if (isShared) releaseLock(region.int32, 0)
      return { ...bucket }
    },
    valueOf: () => undefined,
  }
}
