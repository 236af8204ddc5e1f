import { plainAddress } from '../../../lib/address/cidr.ts'
import { clientNetwork } from '../../../lib/address/client-network.ts'
import type { Clock } from '../../../lib/clock.ts'
import { createLru } from '../../../lib/lru.ts'

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

/** Creates a token bucket per address. IPv6 counts by /64, the smallest network assigned to a client. */
export function createRequestRateLimit(clock: Pick<Clock, 'monotonic'>): RequestRateLimit {
  const buckets = createLru<string, { tokens: number; at: number }>(maxAddresses)
  return {
    tryAcquire(address) {
      const network = clientNetwork(plainAddress(address))
      const now = clock.monotonic()
      const bucket = buckets.get(network) ?? { tokens: burst, at: now }
      const tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond)
      buckets.set(network, { tokens: tokens < 1 ? tokens : tokens - 1, at: now })
      return tokens >= 1
    },
    refund(address, requests) {
      const bucket = buckets.get(clientNetwork(plainAddress(address)))
      if (bucket !== undefined) bucket.tokens = Math.min(burst, bucket.tokens + requests)
    },
  }
}
