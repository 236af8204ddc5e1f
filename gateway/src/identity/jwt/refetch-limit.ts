import { hash } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { Memory } from '../../lib/planes/memory.ts'

/** Rate limit of key set fetches for tokens with unknown key ids. */
export type RefetchLimit = {
  /** Counts a fetch for this key id; false if the limit is reached. */
  tryAcquire(keyId: string): boolean
  /** Records a key id after a fetch, so that it causes no further fetch for a while. */
  recordUnknown(keyId: string): void
}

/** Burst of fetches; afterwards one per `refillMs`. */
const burst = 5
const refillMs = 10_000
/** Time during which a recorded key id causes no fetch. */
const unknownKeyMs = 30_000
/** Recorded ids. At most 8 are in force: `burst`, and one per `refillMs` of `unknownKeyMs`. */
const records = 16

/** Cells of the region, which has no lock. A record is a digest of 8 bytes and its time. */
const cells = { spent: 4, nextRecord: 5 }
const filledAt = 3
const firstRecord = 8
const recordCells = 4

/**
 * Creates a token bucket over all key ids, with a bounded list of recorded ids. Repeated forged ids cost one
 * fetch each, so a rotated key is still fetched immediately. With random ids the bucket limits the load on
 * the provider, and a rotation takes effect after at most `refillMs`. The limit of a name applies to all data
 * planes, whose calls must exclude each other.
 */
export function createRefetchLimit(
  name: string,
  memory: Memory,
  clock: Pick<Clock, 'monotonic'>,
): RefetchLimit {
  const region = memory.region(`refetch limit: ${name}`, (firstRecord + records * recordCells) * 4)

  function isRecorded(keyId: string, now: number): boolean {
    const [high, low] = digestOf(keyId)
    const { int32, float64 } = region
    for (let record = 0; record < records; record += 1) {
      const at = firstRecord + record * recordCells
      if (int32[at] === high && int32[at + 1] === low && now < (float64[at / 2 + 1] ?? 0) + unknownKeyMs)
        return true
    }
    return false
  }

  return {
    tryAcquire(keyId) {
      const now = clock.monotonic()
      if (isRecorded(keyId, now)) return false
      const { int32, float64 } = region
      const refilledAt = float64[filledAt] ?? 0
      const refills = Math.floor((now - refilledAt) / refillMs)
      const spent = Math.max(0, (int32[cells.spent] ?? 0) - refills)
      if (spent === burst) return false
      int32[cells.spent] = spent + 1
      float64[filledAt] = spent === 0 ? now : refilledAt + refills * refillMs
      return true
    },
    recordUnknown(keyId) {
      const { int32, float64 } = region
      const record = int32[cells.nextRecord] ?? 0
      int32[cells.nextRecord] = (record + 1) % records
      const at = firstRecord + record * recordCells
      const [high, low] = digestOf(keyId)
      int32[at] = high
      int32[at + 1] = low
      float64[at / 2 + 1] = clock.monotonic()
    },
  }
}

/** Digest of an id. Clients control the length of ids. */
function digestOf(keyId: string): [high: number, low: number] {
  const digest = hash('sha256', keyId, 'buffer')
  return [digest.readInt32LE(0), digest.readInt32LE(4)]
}
