import { type LeaseReply, type LeaseReport, leaseMs } from '../../../lib/planes/lease-exchange.ts'

/** A bucket in the database. Times are milliseconds since the epoch, by the clock of the database. */
export type SharedBucket = {
  readonly used: number
  readonly refilledAt: number
  /** Leases that have not expired, by process. */
  readonly leases: Readonly<Record<string, SharedLease>>
}

export type SharedLease = { readonly units: number; readonly until: number }

export type Settled = { readonly bucket: SharedBucket; readonly reply: LeaseReply }

/**
 * Applies a report to a bucket, and grants a lease: an equal share of the units that are neither used nor
 * leased to others, among the processes with a lease. It is at least the number of units that the process has
 * retained of its lease. Used units and leases never exceed the capacity, except for units that were consumed
 * without a lease. Those are deducted from later refills.
 */
export function settle(
  found: SharedBucket | undefined,
  report: LeaseReport,
  process: string,
  nowMs: number,
): Settled {
  const bucket = refilled(found ?? { used: 0, refilledAt: nowMs, leases: {} }, report, nowMs)
  const used = Math.max(0, bucket.used + chargeOf(report, bucket.used))
  const others = Object.entries(bucket.leases).filter(
    ([owner, { until }]) => owner !== process && until > nowMs,
  )
  const leased = others.reduce((sum, [, { units }]) => sum + units, 0)
  const available = Math.max(0, report.capacity - used - leased)
  const share = Math.ceil(available / (others.length + 1))
  const own = bucket.leases[process]
  const isLeased = own !== undefined && own.until > nowMs
  const units = isLeased ? Math.max(share, Math.min(report.kept, own.units)) : share
  const leases = Object.fromEntries([...others, [process, { units, until: nowMs + leaseMs }]])
  return {
    bucket: { used, refilledAt: bucket.refilledAt, leases },
    reply: { used, sinceRefillMs: Math.max(0, nowMs - bucket.refilledAt), lease: units },
  }
}

/** Time at which a bucket is full, so that its row may be deleted. */
export function fullAt({ used, refilledAt }: SharedBucket, { refill, intervalMs }: LeaseReport): number {
  return Math.max(refilledAt + Math.ceil(used / refill) * intervalMs, refilledAt + leaseMs)
}

function refilled(bucket: SharedBucket, { refill, intervalMs }: LeaseReport, nowMs: number): SharedBucket {
  const intervals = Math.floor((nowMs - bucket.refilledAt) / intervalMs)
  if (intervals <= 0) return bucket
  return {
    used: Math.max(0, bucket.used - intervals * refill),
    refilledAt: bucket.refilledAt + intervals * intervalMs,
    leases: bucket.leases,
  }
}

/**
 * Units to add. Token usage is capped at the capacity, as in a local bucket, and so are units that were
 * consumed without the database.
 */
function chargeOf({ counts, spent, wasAway, capacity }: LeaseReport, used: number): number {
  if (spent <= 0 || (counts === 'requests' && !wasAway)) return Math.min(spent, 2 * capacity - used)
  return Math.min(spent, Math.max(0, capacity - used))
}
