import { plainAddress } from '../../../lib/address/cidr.ts'
import { clientNetwork } from '../../../lib/address/client-network.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Memory } from '../../../lib/planes/memory.ts'
import { createRecentRecords } from '../../../lib/planes/recent-records.ts'

/** Rate limit per client address for the endpoints without authentication. */
export type RequestRateLimit = {
  /** Counts a request of this address; false if the limit is reached. */
  tryAcquire(address: string): boolean
  /** Removes requests from the count. */
  refund(address: string, requests: number): void
}

const burst = 120
const perSecond = 2
const maxAddresses = 10_000
/** Numbers of an address: requests counted, and the time of the count. */
const countedAt = 0
const timeAt = 1
const size = 2

/**
 * Creates a token bucket per address, for all data planes. IPv6 counts by /64, the smallest network assigned
 * to a client.
 */
export function createRequestRateLimit(
  name: string,
  memory: Memory,
  clock: Pick<Clock, 'monotonic'>,
): RequestRateLimit {
  const buckets = createRecentRecords(memory, { name, maxRecords: maxAddresses, size }, clock)
  return {
    tryAcquire(address) {
      const now = clock.monotonic()
      return buckets.update(clientNetwork(plainAddress(address)), (numbers, from) => {
        const elapsedMs = Math.max(0, now - (numbers[from + timeAt] ?? 0))
        const counted = Math.max(0, (numbers[from + countedAt] ?? 0) - (elapsedMs / 1000) * perSecond)
        const isAllowed = counted <= burst - 1
        numbers[from + countedAt] = isAllowed ? counted + 1 : counted
        numbers[from + timeAt] = now
        return isAllowed
      })
    },
    refund(address, requests) {
      buckets.find(clientNetwork(plainAddress(address)), (numbers, from) => {
        numbers[from + countedAt] = Math.max(0, (numbers[from + countedAt] ?? 0) - requests)
      })
    },
  }
}
