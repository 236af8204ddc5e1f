import type { Clock } from '../../../lib/clock.ts'
import type { Target } from '../targets/target.ts'
import { type Inspected, type InspectionLimits, inspectTarget } from './inspect-target.ts'

/** Latest result of a target. */
export type Inspection = {
  readonly inspected: Inspected
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Sessions of the gateway at targets, for their live lists. */
export type Inspections = {
  /**
   * The result of a target, at most `maxAgeMs` old. Sessions at the same target are shared, and a few are
   * open at the same time. Undefined if there is none after `waitMs`; then the session continues.
   */
  read(target: Target, options: { maxAgeMs: number; waitMs: number }): Promise<Inspection | undefined>
}

export type InspectionsOptions = {
  readonly clock: Clock
  /** Version of the gateway, in `clientInfo`. */
  readonly version: string
  readonly limits?: InspectionLimits
}

/** Sessions that are open at the same time: each may be a program. */
const maxOpen = 4
/** Targets with a stored result. */
const maxStored = 1_000
const defaultLimits: InspectionLimits = { initializeMs: 45_000, totalMs: 60_000 }

export function createInspections({
  clock,
  version,
  limits = defaultLimits,
}: InspectionsOptions): Inspections {
  /** By target object: another configuration of a target is another object. */
  const latest = new Map<Target, Inspection>()
  const running = new Map<Target, Promise<Inspection>>()
  const waiting: (() => void)[] = []
  let open = 0

  async function inspect(target: Target): Promise<Inspection> {
    if (open >= maxOpen) await new Promise<void>((resolve) => waiting.push(resolve))
    open += 1
    try {
      const inspected = await inspectTarget(target, version, limits)
      const inspection = { inspected, at: clock.now() }
      store(target, inspection)
      return inspection
    } finally {
      open -= 1
      running.delete(target)
      waiting.shift()?.()
    }
  }

  function store(target: Target, inspection: Inspection): void {
    latest.delete(target)
    latest.set(target, inspection)
    for (const oldest of latest.keys()) {
      if (latest.size <= maxStored) return
      latest.delete(oldest)
    }
  }

  return {
    async read(target, { maxAgeMs, waitMs }) {
      const known = latest.get(target)
      if (known !== undefined && clock.now() - known.at <= maxAgeMs) return known
      const inspection = running.get(target) ?? inspect(target)
      running.set(target, inspection)
      return await withinTime(inspection, waitMs, known)
    },
  }
}

async function withinTime(
  inspection: Promise<Inspection>,
  waitMs: number,
  otherwise: Inspection | undefined,
): Promise<Inspection | undefined> {
  const expired = Promise.withResolvers<Inspection | undefined>()
  const timer = setTimeout(() => expired.resolve(otherwise), waitMs)
  try {
    return await Promise.race([inspection, expired.promise])
  } finally {
    clearTimeout(timer)
  }
}
